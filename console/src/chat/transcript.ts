/** What a conversation looks like: entries of the log, folded into questions with their answers. Pure functions only. */

import type { Body, ClientEntry, Entry, Said } from "../protocol/index.ts";

/** How an answer stands. `cut` is one that an error ended. */
export type Progress = "running" | "done" | "stopped" | "cut";

/** An emergency or a crisis that the server answered as such. */
export interface Safety {
  readonly kind: string;
  readonly tier: string;
}

export interface Answer {
  readonly id: string;
  readonly sentences: readonly { readonly sequence: number; readonly text: string }[];
  readonly progress: Progress;
  readonly safety: Safety | null;
  /** Why it was given without the model, in one word; null where the model gave it, or there is none. */
  readonly trouble: string | null;
}

export interface Question {
  readonly text: string;
  readonly state: "waiting" | "delivered" | "refused";
  /** Why it was refused, in the server's words. */
  readonly why: string;
}

export type Trace = Body<"MemoryTrace">;

/** A message with what came of it. `question` is null when it was written on another device. */
export interface Exchange {
  readonly id: string;
  readonly question: Question | null;
  readonly answers: readonly Answer[];
  readonly traces: readonly Trace[];
  /** Its answer was stopped, and has not ended yet. */
  readonly stopping: boolean;
  /** Why there is no answer, in the server's words. */
  readonly failure: string;
  /** What is to be asked for again after a failure: the answer that was cut off, or the message if none had begun. */
  readonly failed: string;
}

export type Transcript = readonly Exchange[];

/** The transcript after one more entry. One of ours comes again whenever its fate changes. */
export function fold(transcript: Transcript, entry: Entry): Transcript {
  if (entry.from === "client") return tell(transcript, entry);
  return entry.said ? hear(transcript, entry.said) : transcript;
}

const STATES = { waiting: "waiting", acknowledged: "delivered", refused: "refused" } as const;

function tell(transcript: Transcript, { said, fate }: ClientEntry): Transcript {
  switch (said.name) {
    case "UserMessage": {
      const why = fate.state === "refused" ? fate.message : "";
      return change(transcript, said.body.id, () => ({ question: { text: said.body.content, state: STATES[fate.state], why } }));
    }
    case "ControlStop":
      return fate.state === "acknowledged" && fate.success ? stop(transcript, said.body.targetId ?? "") : transcript;
    default:
      return transcript;
  }
}

function hear(transcript: Transcript, said: Said): Transcript {
  switch (said.name) {
    case "StartAnswer": {
      const { id, previousId, safety } = said.body;
      const answer: Answer = { id, sentences: [], progress: "running", safety: safety ? readSafety(safety) : null, trouble: null };
      return change(transcript, previousId, ({ answers }) => ({ answers: [...answers, answer], failure: "" }));
    }
    case "AssistantSentence": {
      const { previousId, sequence, text, isFinal, safety: danger, trouble = null } = said.body;
      const grow: AnswerEdit = ({ sentences, progress, safety }, { stopping }) => ({
        safety: danger ? readSafety(danger) : safety,
        sentences: text ? [...sentences, { sequence, text }] : sentences,
        trouble,
        progress: isFinal ? (stopping ? "stopped" : "done") : progress,
      });
      return changeAnswer(transcript, previousId, grow, isFinal ? { stopping: false } : {});
    }
    case "AssistantMessage": {
      const { id, previousId, content, safety, trouble = null } = said.body;
      const sentences = [{ sequence: 1, text: content }];
      const answer: Answer = { id, sentences, progress: "done", safety: safety ? readSafety(safety) : null, trouble };
      return change(transcript, previousId, ({ answers }) => ({ answers: [...answers, answer], failure: "" }));
    }
    case "MemoryTrace": {
      const message = said.body.previousId ?? transcript.at(-1)?.id ?? "";
      return change(transcript, message, ({ traces }) => ({ traces: [...traces, said.body] }));
    }
    case "ErrorMessage": {
      const message = said.body.originatingId ?? transcript.at(-1)?.id ?? "";
      return change(transcript, message, ({ answers }) => ({
        failed: answers.find(({ progress }) => progress === "running")?.id ?? message,
        answers: answers.map((answer) => (answer.progress === "running" ? { ...answer, progress: "cut" } : answer)),
        stopping: false,
        failure: said.body.message,
      }));
    }
    default:
      return transcript;
  }
}

/** The server has stopped it, which may be heard before the answer's end or after, or before it began. */
function stop(transcript: Transcript, target: string): Transcript {
  const meant = ({ id, answers }: Exchange) => id === target || answers.some((answer) => answer.id === target);
  const exchange = transcript.find(meant);
  const latest = exchange?.answers.at(-1);
  if (latest?.progress === "done") return changeAnswer(transcript, latest.id, () => ({ progress: "stopped" }));
  return exchange ? change(transcript, exchange.id, () => ({ stopping: true })) : transcript;
}

/** Whether an answer is under way or still to come. */
export function isAwaited({ question, answers, failure }: Exchange): boolean {
  const latest = answers.at(-1);
  return latest ? latest.progress === "running" : question?.state === "delivered" && !failure;
}

function change(transcript: Transcript, id: string, edit: (exchange: Exchange) => Partial<Exchange>): Transcript {
  const known = transcript.some((exchange) => exchange.id === id);
  const all = known ? transcript : [...transcript, { id, question: null, answers: [], traces: [], stopping: false, failure: "", failed: "" }];
  return all.map((exchange) => (exchange.id === id ? { ...exchange, ...edit(exchange) } : exchange));
}

type AnswerEdit = (answer: Answer, exchange: Exchange) => Partial<Answer>;

function changeAnswer(transcript: Transcript, id: string, edit: AnswerEdit, also: Partial<Exchange> = {}): Transcript {
  const exchange = transcript.find(({ answers }) => answers.some((answer) => answer.id === id));
  if (!exchange) return transcript;
  return change(transcript, exchange.id, ({ answers }) => ({
    ...also,
    answers: answers.map((answer) => (answer.id === id ? { ...answer, ...edit(answer, exchange) } : answer)),
  }));
}

function readSafety({ kind, tier }: Readonly<Record<string, unknown>>): Safety {
  return { kind: String(kind ?? ""), tier: String(tier ?? "") };
}
