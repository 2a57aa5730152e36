/** Turns the entries of a conversation into questions and their answers. Pure functions only. */

import type { Body, ClientEntry, Entry, Said } from "../protocol/index.ts";

/** The state of an answer. `cut` means that an error ended it. */
export type Progress = "running" | "done" | "stopped" | "cut";

/** The emergency or crisis that an answer responds to. Possible danger is only asked about. */
export interface Safety {
  readonly kind: string;
  readonly tier: string;
  readonly certainty: "certain" | "possible";
}

export interface Answer {
  readonly id: string;
  readonly sentences: readonly { readonly sequence: number; readonly text: string }[];
  readonly progress: Progress;
  readonly safety: Safety | null;
  /** Why the model failed, in one word; null if it did not, or if there is no model. */
  readonly trouble: string | null;
}

export interface Question {
  readonly text: string;
  readonly state: "waiting" | "delivered" | "refused";
  /** The server's text if it refused the message. */
  readonly why: string;
}

export type Trace = Body<"MemoryTrace">;

/** A message with its answers. `question` is null if it was written on another device. */
export interface Exchange {
  readonly id: string;
  readonly question: Question | null;
  readonly answers: readonly Answer[];
  readonly traces: readonly Trace[];
  /** The answer was stopped and has not ended yet. */
  readonly stopping: boolean;
  /** The server's text if there is no answer. */
  readonly failure: string;
  /** The id to ask for again after a failure: of the answer that was cut, or of the message if none had started. */
  readonly failed: string;
  /** The person has edited the message; the exchange after this one has the new text. */
  readonly superseded: boolean;
  /** What the person noted about the message or its answer. */
  readonly notes: readonly Note[];
}

export interface Note {
  readonly id: string;
  readonly text: string;
  readonly state: Question["state"];
}

export type Transcript = readonly Exchange[];

/** Add an entry to a transcript. An entry of ours comes again whenever its state changes. */
export function fold(transcript: Transcript, entry: Entry): Transcript {
  if (entry.from === "client") return addOwn(transcript, entry);
  return entry.said ? addReceived(transcript, entry.said) : transcript;
}

const STATES = { waiting: "waiting", acknowledged: "delivered", refused: "refused" } as const;

function addOwn(transcript: Transcript, { said, fate }: ClientEntry): Transcript {
  switch (said.name) {
    case "UserMessage": {
      const why = fate.state === "refused" ? fate.message : "";
      return change(transcript, said.body.id, () => ({ question: { text: said.body.content, state: STATES[fate.state], why } }));
    }
    case "ControlStop":
      return fate.state === "acknowledged" && fate.success ? stop(transcript, said.body.targetId ?? "") : transcript;
    case "UserNote": {
      const { id, messageId, content } = said.body;
      const about = transcript.find((exchange) => isAbout(exchange, messageId ?? ""));
      const note: Note = { id, text: content, state: STATES[fate.state] };
      return about ? change(transcript, about.id, ({ notes }) => ({ notes: [...notes.filter((one) => one.id !== id), note] })) : transcript;
    }
    case "ControlVariation": {
      const { mode, targetId, newContent } = said.body;
      const edited = mode === "edit" && newContent !== undefined && fate.state === "acknowledged";
      return edited ? replaceMessage(transcript, targetId, newContent) : transcript;
    }
    default:
      return transcript;
  }
}

function addReceived(transcript: Transcript, said: Said): Transcript {
  switch (said.name) {
    case "StartAnswer": {
      const { id, previousId, safety } = said.body;
      const answer: Answer = { id, sentences: [], progress: "running", safety: safety ? readSafety(safety) : null, trouble: null };
      return change(nameEdited(transcript, previousId), previousId, ({ answers }) => ({ answers: [...answers, answer], failure: "" }));
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
      return change(nameEdited(transcript, previousId), previousId, ({ answers }) => ({ answers: [...answers, answer], failure: "" }));
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

/** The id of an edited message until the server has named it. */
const EDITED = "edited";

/** Put the new text of an edited message after the old one. */
function replaceMessage(transcript: Transcript, id: string, text: string): Transcript {
  const marked = change(transcript, id, () => ({ superseded: true }));
  return change(marked, EDITED, () => ({ question: { text, state: "delivered", why: "" } }));
}

/** The server gives an edited message a new id, which its answer shows first. */
function nameEdited(transcript: Transcript, id: string): Transcript {
  if (transcript.some((exchange) => exchange.id === id)) return transcript;
  return transcript.map((exchange) => (exchange.id === EDITED ? { ...exchange, id } : exchange));
}

/** How many long-term memories were read for an answer. */
export function recalledMemories({ traces }: Exchange): number {
  const recalled = traces.filter(({ action, memoryType }) => action === "retrieved" && memoryType !== "memory_block");
  return new Set(recalled.map(({ memoryId }) => memoryId)).size;
}

/** The notes about a message or its answers: those that the server knew, then those that were written here since. */
export function allNotes(exchange: Exchange, known: readonly { readonly id: string; readonly messageId: string | null; readonly content: string }[]): Note[] {
  const written = new Set(exchange.notes.map(({ id }) => id));
  const earlier = known.filter(({ id, messageId }) => !written.has(id) && messageId !== null && isAbout(exchange, messageId));
  return [...earlier.toReversed().map(({ id, content }): Note => ({ id, text: content, state: "delivered" })), ...exchange.notes];
}

/** Mark an answer as stopped. That may be known before the answer starts, before it ends, or after. */
function stop(transcript: Transcript, target: string): Transcript {
  const exchange = transcript.find((one) => isAbout(one, target));
  const latest = exchange?.answers.at(-1);
  if (latest?.progress === "done") return changeAnswer(transcript, latest.id, () => ({ progress: "stopped" }));
  return exchange ? change(transcript, exchange.id, () => ({ stopping: true })) : transcript;
}

/** Whether an id is that of the message or of one of its answers. */
function isAbout({ id, answers }: Exchange, target: string): boolean {
  return id === target || answers.some((answer) => answer.id === target);
}

/** Whether an answer is running or expected. */
export function isAwaited({ question, answers, failure }: Exchange): boolean {
  const latest = answers.at(-1);
  return latest ? latest.progress === "running" : question?.state === "delivered" && !failure;
}

function change(transcript: Transcript, id: string, edit: (exchange: Exchange) => Partial<Exchange>): Transcript {
  const known = transcript.some((exchange) => exchange.id === id);
  const all = known ? transcript : [...transcript, emptyExchange(id)];
  return all.map((exchange) => (exchange.id === id ? { ...exchange, ...edit(exchange) } : exchange));
}

function emptyExchange(id: string): Exchange {
  return { id, question: null, answers: [], traces: [], stopping: false, failure: "", failed: "", superseded: false, notes: [] };
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

/** Danger counts as certain unless the server says that it is possible; older servers do not say it. */
function readSafety({ kind, tier, certainty }: Readonly<Record<string, unknown>>): Safety {
  return { kind: String(kind ?? ""), tier: String(tier ?? ""), certainty: certainty === "possible" ? "possible" : "certain" };
}
