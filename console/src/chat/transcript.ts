/** What a conversation looks like: entries of the log, folded into questions with their answers. Pure functions only. */

import type { Body, Entry } from "../protocol/index.ts";

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
  /** Why there is no answer, in the server's words. */
  readonly failure: string;
}

export type Transcript = readonly Exchange[];

/** The transcript after one more entry. One of ours comes again whenever its fate changes. */
export function fold(transcript: Transcript, { from, said, ...entry }: Entry): Transcript {
  if (from === "client" && said?.name === "UserMessage" && "fate" in entry) {
    const { id, content } = said.body;
    const state = { waiting: "waiting", acknowledged: "delivered", refused: "refused" } as const;
    const why = entry.fate.state === "refused" ? entry.fate.message : "";
    return change(transcript, id, () => ({ question: { text: content, state: state[entry.fate.state], why } }));
  }
  if (from === "client" && said?.name === "ControlStop" && "fate" in entry) {
    const stopped = entry.fate.state === "acknowledged" && entry.fate.success;
    return stopped ? changeAnswer(transcript, said.body.targetId ?? "", () => ({ progress: "stopped" })) : transcript;
  }
  return from === "server" && said ? hear(transcript, said) : transcript;
}

function hear(transcript: Transcript, said: NonNullable<Entry["said"]>): Transcript {
  switch (said.name) {
    case "StartAnswer": {
      const { id, previousId, safety } = said.body;
      const answer: Answer = { id, sentences: [], progress: "running", safety: safety ? readSafety(safety) : null };
      return change(transcript, previousId, ({ answers }) => ({ answers: [...answers, answer], failure: "" }));
    }
    case "AssistantSentence": {
      const { previousId, sequence, text, isFinal } = said.body;
      return changeAnswer(transcript, previousId, ({ sentences, progress }) => ({
        sentences: text ? [...sentences, { sequence, text }] : sentences,
        progress: isFinal && progress === "running" ? "done" : progress,
      }));
    }
    case "AssistantMessage": {
      const { id, previousId, content } = said.body;
      const sentences = [{ sequence: 1, text: content }];
      const answer: Answer = { id, sentences, progress: "done", safety: null };
      return change(transcript, previousId, ({ answers }) => ({ answers: [...answers, answer], failure: "" }));
    }
    case "MemoryTrace": {
      const message = said.body.previousId ?? transcript.at(-1)?.id ?? "";
      return change(transcript, message, ({ traces }) => ({ traces: [...traces, said.body] }));
    }
    case "ErrorMessage": {
      const message = said.body.originatingId ?? transcript.at(-1)?.id ?? "";
      return change(transcript, message, ({ answers }) => ({
        answers: answers.map((answer) => (answer.progress === "running" ? { ...answer, progress: "cut" } : answer)),
        failure: said.body.message,
      }));
    }
    default:
      return transcript;
  }
}

/** Whether an answer is under way or still to come. */
export function isAwaited({ question, answers, failure }: Exchange): boolean {
  const latest = answers.at(-1);
  return latest ? latest.progress === "running" : question?.state === "delivered" && !failure;
}

function change(transcript: Transcript, id: string, edit: (exchange: Exchange) => Partial<Exchange>): Transcript {
  const known = transcript.some((exchange) => exchange.id === id);
  const all = known ? transcript : [...transcript, { id, question: null, answers: [], traces: [], failure: "" }];
  return all.map((exchange) => (exchange.id === id ? { ...exchange, ...edit(exchange) } : exchange));
}

function changeAnswer(transcript: Transcript, id: string, edit: (answer: Answer) => Partial<Answer>): Transcript {
  return transcript.map((exchange) => {
    if (!exchange.answers.some((answer) => answer.id === id)) return exchange;
    const answers = exchange.answers.map((answer) => (answer.id === id ? { ...answer, ...edit(answer) } : answer));
    return { ...exchange, answers };
  });
}

function readSafety({ kind, tier }: Readonly<Record<string, unknown>>): Safety {
  return { kind: String(kind ?? ""), tier: String(tier ?? "") };
}
