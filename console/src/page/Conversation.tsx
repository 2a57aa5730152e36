/** What was asked and answered, newest last, each with its traces beside it when they are wanted. */

import { memo, useEffect, useRef } from "react";
import { isAwaited, type Answer, type Exchange, type Transcript } from "../chat/transcript.ts";
import { Traces } from "./Traces.tsx";

const NEAR_THE_END = 120;
const SAFETY_TITLES: Record<string, string> = { emergency: "This may be an emergency", crisis: "You are not alone" };

export function Conversation({ transcript, tracesShown }: { transcript: Transcript; tracesShown: boolean }) {
  const scroll = useRef<HTMLElement>(null);
  const following = useRef(true);
  useEffect(() => {
    if (following.current) scroll.current?.scrollTo({ top: scroll.current.scrollHeight });
  }, [transcript, tracesShown]);
  const watchScroll = () => {
    const place = scroll.current;
    if (place) following.current = place.scrollHeight - place.scrollTop - place.clientHeight < NEAR_THE_END;
  };
  return (
    <main ref={scroll} onScroll={watchScroll} tabIndex={-1}>
      <div role="log" aria-label="Conversation" aria-live="polite" className="conversation">
        {transcript.map((exchange) => (
          <OneExchange key={exchange.id} exchange={exchange} tracesShown={tracesShown} />
        ))}
      </div>
      {transcript.length === 0 && <p className="welcome">What is on your mind? Tell me how you are feeling.</p>}
    </main>
  );
}

const OneExchange = memo(function OneExchange({ exchange, tracesShown }: { exchange: Exchange; tracesShown: boolean }) {
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
        {failure && <p className="failure">{failure}</p>}
      </div>
      {tracesShown && <Traces traces={traces} />}
    </section>
  );
});

function OneAnswer({ answer }: { answer: Answer }) {
  const { sentences, progress, safety } = answer;
  return (
    <article className={safety ? "answer safety" : "answer"} aria-busy={progress === "running"}>
      <h2 className="unseen">Anamnesis</h2>
      {safety && <strong className="safety-title">{SAFETY_TITLES[safety.kind] ?? "Please read this first"}</strong>}
      <p>
        {sentences.map(({ sequence, text }) => (
          <span className="sentence" key={sequence}>
            {text}{" "}
          </span>
        ))}
      </p>
      {progress === "running" && <Thinking />}
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
