/** The messages and answers, newest last, each with its memory traces if the person wants to see them. */

import { Link } from "@tanstack/react-router";
import { memo, useEffect, useRef, useState, type FormEvent, type UIEvent } from "react";
import { allNotes, isAwaited, recalledMemories, type Answer, type Exchange, type Question, type Safety, type Transcript } from "../../chat/transcript.ts";
import type { NoteText } from "../../api/types.ts";
import { words } from "../../parts/format.ts";
import type { MemoryDisplay } from "./MemoryMenu.tsx";
import { Traces } from "./Traces.tsx";
import type { EarlierQuestion, Questions } from "./useEarlierQuestions.ts";

const NEAR_THE_END = 40;
// A sentence usually ends with a space. If it does not, one is added, or the next sentence would stick to it.
const ENDS_WITHOUT_SPACE = /[.!?…]["'”’»)\]]*$/;
/** Certain danger is shown as an alarm, possible danger as a question. */
const STYLES: Record<Safety["certainty"], string> = { certain: "safety", possible: "safety-question" };
const SAFETY_TITLES: Record<string, string> = { emergency: "This may be an emergency", crisis: "You are not alone" };

interface ConversationProps {
  transcript: Transcript;
  /** The texts of messages that the transcript does not have. */
  questions: Questions;
  /** Notes that the server knows; the transcript has only those that were written here. */
  noted: readonly NoteText[];
  signedIn: boolean;
  display: MemoryDisplay;
  onAskAgain: (exchange: Exchange) => void;
  /** Null if the conversation cannot be continued here. */
  onRegenerate: ((answer: string) => void) | null;
  onEdit: ((message: string, text: string) => void) | null;
  onNote: ((message: string, text: string) => void) | null;
}

export function Conversation({ transcript, questions, noted, signedIn, display, onAskAgain, onRegenerate, onEdit, onNote }: ConversationProps) {
  const { window, content, watch } = useScrolling(transcript.length);
  const idle = !transcript.some(isAwaited);
  return (
    <main id="content" ref={window} onScroll={watch} tabIndex={-1}>
      <div ref={content} role="log" aria-label="Conversation" aria-live="polite" className="conversation">
        {transcript.map((exchange, index) => {
          const isLatest = index === transcript.length - 1;
          return (
            <OneExchange
              key={exchange.id}
              exchange={exchange}
              earlier={exchange.question === null ? (questions.get(exchange.id) ?? null) : null}
              noted={noted}
              display={display}
              onAskAgain={isLatest ? onAskAgain : null}
              onRegenerate={isLatest && idle ? onRegenerate : null}
              onEdit={isLatest && idle ? onEdit : null}
              onNote={onNote}
            />
          );
        })}
      </div>
      {signedIn && transcript.length === 0 && (
        <div className="welcome">
          <p>What is on your mind? Tell me how you are feeling.</p>
          <p className="hint">I remember what you tell me. Beneath each answer, "why?" shows which memory it came from.</p>
        </div>
      )}
    </main>
  );
}

/** Scrolls to the end while it grows, until the person scrolls up; a new message scrolls to the end again. */
function useScrolling(messages: number) {
  const window = useRef<HTMLElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const following = useRef(true);
  const top = useRef(0);
  const follow = () => following.current && window.current?.scrollTo({ top: window.current.scrollHeight });
  const watch = ({ currentTarget: { scrollHeight, scrollTop, clientHeight } }: UIEvent) => {
    // Only scrolling up stops it: when an answer grows, the distance to the end grows without the person.
    if (scrollHeight - scrollTop - clientHeight < NEAR_THE_END) following.current = true;
    else if (scrollTop < top.current) following.current = false;
    top.current = scrollTop;
  };
  useEffect(() => {
    following.current = true;
    follow();
  }, [messages]);
  useEffect(() => {
    const sizes = new ResizeObserver(follow);
    for (const element of [window.current, content.current]) if (element) sizes.observe(element);
    return () => sizes.disconnect();
  }, []);
  return { window, content, watch };
}

interface ExchangeProps {
  exchange: Exchange;
  /** The text of the message, if it was written elsewhere. */
  earlier: EarlierQuestion | null;
  noted: readonly NoteText[];
  display: MemoryDisplay;
  /** The three actions are null unless it is the latest: only that can be answered again. */
  onAskAgain: ((exchange: Exchange) => void) | null;
  onRegenerate: ((answer: string) => void) | null;
  onEdit: ((message: string, text: string) => void) | null;
  onNote: ((message: string, text: string) => void) | null;
}

const OneExchange = memo(function OneExchange({ exchange, earlier, noted, display, onAskAgain, onRegenerate, onEdit, onNote }: ExchangeProps) {
  const { question, answers, traces, failure, superseded } = exchange;
  const notes = allNotes(exchange, noted);
  const hasText = question || earlier !== null || answers.length > 0 || failure;
  if (!hasText && display !== "panel") return null;
  const latest = answers.at(-1);
  const said = (
    <div className="said">
      {question && <OneQuestion id={exchange.id} question={question} onEdit={question.state === "delivered" ? onEdit : null} />}
      {earlier !== null && <OneQuestion id={exchange.id} question={{ text: earlier.text, state: "delivered", why: "" }} onEdit={onEdit} />}
      {answers.length > 1 && (
        <details className="before">
          <summary>{answers.length === 2 ? "The answer before" : "The answers before"}</summary>
          {answers.slice(0, -1).map((answer) => (
            <OneAnswer key={answer.id} answer={answer} />
          ))}
        </details>
      )}
      {latest && <OneAnswer key={latest.id} answer={latest} />}
      {latest && latest.progress !== "running" && (
        <div className="beneath">
          <Link to="/why/$messageId" params={{ messageId: latest.id }} className="why">
            {display === "hidden" ? "why?" : memoryLine(recalledMemories(exchange))}
          </Link>
          {onRegenerate && !failure && (
            <button type="button" className="quiet" onClick={() => onRegenerate(latest.id)}>
              Answer again
            </button>
          )}
          {onNote && <NewNote onSave={(text) => onNote(latest.id, text)} />}
        </div>
      )}
      {notes.map((note) => (
        <p key={note.id} className="note">
          <span className="quiet-text">Your note:</span> {note.text}
          {note.state === "waiting" && <small>Sending …</small>}
          {note.state === "refused" && <small className="failure">The note was not kept.</small>}
        </p>
      ))}
      {answers.length === 0 && isAwaited(exchange) && <Thinking />}
      {failure && (
        <p className="failure">
          {failure}
          {onAskAgain && (
            <button type="button" onClick={() => onAskAgain(exchange)}>
              Ask again
            </button>
          )}
        </p>
      )}
    </div>
  );
  return (
    <section className="exchange">
      {superseded || earlier?.superseded ? (
        <details className="before">
          <summary>Before you changed your message</summary>
          {said}
        </details>
      ) : (
        said
      )}
      {display === "panel" && <Traces traces={traces} />}
    </section>
  );
});

function NewNote({ onSave }: { onSave: (text: string) => void }) {
  const [writing, setWriting] = useState(false);
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    setWriting(false);
    onSave(String(new FormData(event.currentTarget).get("note")));
  };
  if (!writing)
    return (
      <button type="button" className="quiet" onClick={() => setWriting(true)}>
        Note
      </button>
    );
  return (
    <form className="new-note" onSubmit={save}>
      <input name="note" aria-label="Your note about this answer" required maxLength={2000} autoFocus autoComplete="off" onKeyDown={({ key }) => key === "Escape" && setWriting(false)} />
      <button type="submit">Keep</button>
    </form>
  );
}

const memoryLine = (memories: number) => (memories > 0 ? `from memory: ${memories} · why?` : "from this conversation · why?");

interface QuestionProps {
  id: string;
  question: Question;
  onEdit: ((message: string, text: string) => void) | null;
}

function OneQuestion({ id, question, onEdit }: QuestionProps) {
  const [editing, setEditing] = useState(false);
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget).get("text")).trim();
    setEditing(false);
    if (text && text !== question.text) onEdit?.(id, text);
  };
  if (editing && onEdit)
    return (
      <form className="question editing" onSubmit={save}>
        <textarea name="text" aria-label="Your message, corrected" defaultValue={question.text} rows={3} autoFocus onKeyDown={({ key }) => key === "Escape" && setEditing(false)} />
        <div className="choices">
          <button type="button" onClick={() => setEditing(false)}>
            Cancel
          </button>
          <button type="submit" className="primary">
            Send again
          </button>
        </div>
      </form>
    );
  return (
    <div className="question" data-state={question.state}>
      <h2 className="unseen">You</h2>
      <p>{question.text}</p>
      {question.state === "waiting" && <small>Sending …</small>}
      {question.state === "refused" && <small className="failure">Not delivered: {question.why}</small>}
      {onEdit && (
        <button type="button" className="quiet edit" onClick={() => setEditing(true)}>
          Edit
        </button>
      )}
    </div>
  );
}

/** Why there was no model, where the code says too little. */
const TROUBLES: Readonly<Record<string, string>> = { daily_tokens: "your tokens for today are used up; it answers again after midnight, UTC" };

function OneAnswer({ answer }: { answer: Answer }) {
  const { sentences, progress, safety, trouble } = answer;
  return (
    <article className={`answer ${safety ? STYLES[safety.certainty] : ""}`.trim()} aria-busy={progress === "running"}>
      <h2 className="unseen">Anamnesis</h2>
      {safety?.certainty === "certain" && <strong className="safety-title">{SAFETY_TITLES[safety.kind] ?? "Please read this first"}</strong>}
      {safety?.certainty === "possible" && <span className="question-title">A question first</span>}
      <p>
        {sentences.map(({ sequence, text }) => (
          <span className="sentence" key={sequence}>
            {ENDS_WITHOUT_SPACE.test(text) ? `${text} ` : text}
          </span>
        ))}
      </p>
      {progress === "running" && <Thinking />}
      {trouble !== null && <small className="trouble">Answered without the model: {TROUBLES[trouble] ?? words(trouble)}</small>}
      {progress === "stopped" && <small>Stopped.</small>}
      {progress === "cut" && <small>This answer was cut off.</small>}
    </article>
  );
}

function Thinking() {
  return (
    <span className="thinking">
      <span className="unseen">An answer is on its way.</span>
    </span>
  );
}
