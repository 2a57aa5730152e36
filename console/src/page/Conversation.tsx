/** The messages and answers, newest last, each with its memory traces if the person wants to see them. */

import { memo, useEffect, useRef, type UIEvent } from "react";
import { isAwaited, type Answer, type Exchange, type Safety, type Transcript } from "../chat/transcript.ts";
import { Traces } from "./Traces.tsx";

const NEAR_THE_END = 40;
// A sentence usually ends with a space. If it does not, one is added, or the next sentence would stick to it.
const ENDS_WITHOUT_SPACE = /[.!?…]["'”’»)\]]*$/;
/** Certain danger is shown as an alarm, possible danger as a question. */
const STYLES: Record<Safety["certainty"], string> = { certain: "safety", possible: "safety-question" };
const SAFETY_TITLES: Record<string, string> = { emergency: "This may be an emergency", crisis: "You are not alone" };

interface ConversationProps {
  transcript: Transcript;
  signedIn: boolean;
  tracesShown: boolean;
  onAskAgain: (exchange: Exchange) => void;
}

export function Conversation({ transcript, signedIn, tracesShown, onAskAgain }: ConversationProps) {
  const { window, content, watch } = useScrolling(transcript.length);
  return (
    <main ref={window} onScroll={watch} tabIndex={-1}>
      <div ref={content} role="log" aria-label="Conversation" aria-live="polite" className="conversation">
        {transcript.map((exchange, index) => (
          <OneExchange
            key={exchange.id}
            exchange={exchange}
            tracesShown={tracesShown}
            onAskAgain={index === transcript.length - 1 ? onAskAgain : null}
          />
        ))}
      </div>
      {signedIn && transcript.length === 0 && <p className="welcome">What is on your mind? Tell me how you are feeling.</p>}
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
  tracesShown: boolean;
  /** Null unless it is the latest: only that can be asked again. */
  onAskAgain: ((exchange: Exchange) => void) | null;
}

const OneExchange = memo(function OneExchange({ exchange, tracesShown, onAskAgain }: ExchangeProps) {
  const { question, answers, traces, failure } = exchange;
  const hasText = question || answers.length > 0 || failure;
  if (!hasText && !tracesShown) return null;
  return (
    <section className="exchange">
      <div className="said">
        {question && (
          <div className="question" data-state={question.state}>
            <h2 className="unseen">You</h2>
            <p>{question.text}</p>
            {question.state === "waiting" && <small>Sending …</small>}
            {question.state === "refused" && <small className="failure">Not delivered: {question.why}</small>}
          </div>
        )}
        {answers.map((answer) => (
          <OneAnswer key={answer.id} answer={answer} />
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
      {tracesShown && <Traces traces={traces} />}
    </section>
  );
});

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
      {trouble !== null && <small className="trouble">Answered without the model: {trouble}</small>}
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
