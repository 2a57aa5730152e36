/** What was asked and answered, newest last, each with its traces beside it when they are wanted. */

import { memo, useEffect, useRef, type UIEvent } from "react";
import { isAwaited, type Answer, type Exchange, type Transcript } from "../chat/transcript.ts";
import { Traces } from "./Traces.tsx";

const NEAR_THE_END = 40;
// A sentence brings the space behind it along; where one does not, the next would stick to it.
const LACKS_ITS_SPACE = /[.!?…]["'”’»)\]]*$/;
const SAFETY_TITLES: Record<string, string> = { emergency: "This may be an emergency", crisis: "You are not alone" };

interface ConversationProps {
  transcript: Transcript;
  tracesShown: boolean;
  onAskAgain: (exchange: Exchange) => void;
}

export function Conversation({ transcript, tracesShown, onAskAgain }: ConversationProps) {
  const { window, content, watch } = useFollowing(transcript.length);
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
      {transcript.length === 0 && <p className="welcome">What is on your mind? Tell me how you are feeling.</p>}
    </main>
  );
}

/** Keeps the end in sight while it grows, unless the person has scrolled away; a new message brings it back. */
function useFollowing(messages: number) {
  const window = useRef<HTMLElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const following = useRef(true);
  const top = useRef(0);
  const follow = () => following.current && window.current?.scrollTo({ top: window.current.scrollHeight });
  const watch = ({ currentTarget: { scrollHeight, scrollTop, clientHeight } }: UIEvent) => {
    // Only somebody who scrolls up has left: the end also moves away by itself, when an answer grows.
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
  /** Null when it is too late: only the latest can be asked again. */
  onAskAgain: ((exchange: Exchange) => void) | null;
}

const OneExchange = memo(function OneExchange({ exchange, tracesShown, onAskAgain }: ExchangeProps) {
  const { question, answers, traces, failure } = exchange;
  const spoken = question || answers.length > 0 || failure;
  if (!spoken && !tracesShown) return null;
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
    <article className={safety ? "answer safety" : "answer"} aria-busy={progress === "running"}>
      <h2 className="unseen">Anamnesis</h2>
      {safety && <strong className="safety-title">{SAFETY_TITLES[safety.kind] ?? "Please read this first"}</strong>}
      <p>
        {sentences.map(({ sequence, text }) => (
          <span className="sentence" key={sequence}>
            {LACKS_ITS_SPACE.test(text) ? `${text} ` : text}
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
