/** The answers of the HTTP API that the page reads. */

export interface Session {
  readonly person: string;
  readonly roles: readonly string[];
}

export interface ConversationFacts {
  readonly id: string;
  readonly person: string;
  readonly title: string | null;
  readonly status: "active" | "archived";
  readonly turns: number;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface TraceFacts {
  readonly id: string;
  readonly conversationId: string;
  readonly messageId: string | null;
  readonly memoryId: string;
  readonly memoryType: string | null;
  readonly action: string;
  readonly actor: string | null;
  readonly confidence: number | null;
  readonly label: string | null;
  readonly revision: number | null;
  readonly level: string | null;
  readonly utilization: number | null;
  readonly background: boolean;
  readonly reason: string | null;
  readonly createdAt: string;
}

export interface WholeTrace extends TraceFacts {
  readonly content: string;
  readonly metadata: Readonly<Record<string, unknown>> | null;
}

export const LABELS = ["conversation_history", "active_session", "context_summary", "memory_metadata"] as const;
export type Label = (typeof LABELS)[number];

export interface RevisionFacts {
  readonly revision: number;
  readonly size: number;
  readonly digest: string;
  readonly actor: string;
  readonly turn: number | null;
  readonly createdAt: string;
}

export interface BlockState {
  readonly label: Label;
  readonly revision: number;
  readonly size: number;
  readonly limit: number;
  readonly utilization: number;
  readonly level: string;
  readonly written: RevisionFacts | null;
}

export interface WholeBlock extends BlockState {
  readonly text: string;
  readonly value: Readonly<Record<string, unknown>> | null;
}

export interface Validation {
  readonly valid: boolean;
  readonly departures: readonly { readonly label: string; readonly path: string; readonly rule: string }[];
}

export interface ArchivedTurnFacts {
  readonly turnId: number;
  readonly size: number;
  readonly archivedAt: string;
}

export interface ArchivedTurn extends ArchivedTurnFacts {
  readonly value: Readonly<Record<string, unknown>>;
}

export interface Said {
  readonly id: string;
  readonly content: string;
  readonly status: string;
  readonly createdAt: string;
}

export interface Explanation {
  readonly conversationId: string;
  readonly turn: number;
  readonly state: string;
  readonly error: string | null;
  readonly attempts: number;
  readonly message: Said;
  readonly answer: Said | null;
  readonly understood: {
    readonly previousContext: string | null;
    readonly enrichedMessage: string | null;
    readonly relevantHistory: readonly string[];
    readonly intent: string | null;
    readonly confidence: number | null;
    readonly reasoning: string | null;
    readonly specialist: string | null;
    readonly revision: number;
  } | null;
  readonly blocks: readonly {
    readonly traceId: string;
    readonly label: Label;
    readonly action: string;
    readonly revision: number | null;
    readonly size: number | null;
    readonly changed: readonly string[];
  }[];
  readonly memories: readonly {
    readonly traceId: string;
    readonly memoryId: string;
    readonly memoryType: string | null;
    readonly confidence: number | null;
    readonly position: number | null;
    readonly role: string | null;
    readonly content: string;
  }[];
  readonly safety: readonly {
    readonly id: string;
    readonly stage: string;
    readonly kind: string;
    readonly tier: number;
    readonly certainty: string | null;
    readonly rules: readonly string[];
    readonly refused: string | null;
  }[];
  readonly tools: readonly {
    readonly id: string;
    readonly toolName: string;
    readonly status: string;
    readonly arguments: unknown;
    readonly result: unknown;
    readonly milliseconds: number | null;
  }[];
  readonly steps: readonly { readonly name: string; readonly at: string; readonly milliseconds: number }[];
  readonly model: {
    readonly requests: number;
    readonly promptTokens: number;
    readonly completionTokens: number;
    readonly fallback: string | null;
    readonly trouble: string | null;
  } | null;
  readonly prompt: string | null;
  readonly promptRevision: string | null;
  readonly stations: readonly Station[];
  readonly modelRequests: readonly ModelRequest[];
  readonly retrievalId: string | null;
  readonly previousMessageId: string | null;
  readonly nextMessageId: string | null;
}

/** A station of a turn; `start` is in milliseconds after the attempt began. */
export interface Station {
  readonly name: string;
  readonly start: number;
  readonly milliseconds: number;
}

/** `readable` is what was sent, with real line breaks; `previous` the same of the turn before. Null if it was erased. */
export interface ModelRequest {
  readonly id: string;
  readonly number: number;
  readonly role: string;
  readonly model: string;
  readonly outcome: string;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly request: string | null;
  readonly readable: string | null;
  readonly previous: string | null;
}

/** A memory that a search found, and how far it came. */
export interface Candidate {
  readonly memoryId: string;
  readonly content: string | null;
  readonly kind: string | null;
  readonly position: number;
  readonly score: number | null;
  readonly signals: Readonly<Record<string, number>>;
  readonly tokens: number | null;
  readonly stage: string;
  readonly role: string | null;
  readonly dropped: { readonly at: string; readonly why: string } | null;
}

export interface Retrieval {
  readonly id: string;
  readonly conversationId: string | null;
  readonly messageId: string | null;
  readonly query: string;
  readonly recipe: string;
  readonly mode: string;
  readonly period: string | null;
  readonly threshold: number | null;
  readonly packageType: string | null;
  readonly milliseconds: number;
  readonly createdAt: string;
  readonly budget: { readonly limit: number | null; readonly used: number } | null;
  readonly counts: Readonly<Record<"searched" | "belowThreshold" | "beyondLimit" | "candidates" | "included" | "final", number>>;
  readonly candidates: readonly Candidate[];
}

export interface Overview {
  readonly since: string;
  readonly until: string;
  readonly turnsPerDay: readonly { readonly day: string; readonly turns: number; readonly failed: number }[];
  readonly stations: readonly { readonly name: string; readonly count: number; readonly p50: number; readonly p95: number; readonly p99: number }[];
  readonly routing: readonly { readonly specialist: string; readonly turns: number; readonly confidence: number | null }[];
  readonly alarms: readonly { readonly day: string; readonly certain: number; readonly possible: number }[];
  readonly rotations: readonly { readonly day: string; readonly count: number }[];
  readonly errors: readonly { readonly name: string; readonly count: number }[];
}

export interface TurnFacts {
  readonly id: string;
  readonly conversationId: string;
  readonly turn: number;
  readonly messageId: string;
  readonly intent: string | null;
  readonly confidence: number | null;
  readonly specialist: string | null;
  readonly error: string | null;
  readonly milliseconds: number;
  readonly createdAt: string;
}

export const MEMORY_KINDS = ["fact", "utterance", "summary", "user", "imported"] as const;
export type MemoryKind = (typeof MEMORY_KINDS)[number];

/** A memory in a list. Texts are null unless they were asked for, which one can do for one's own only. */
export interface MemoryFacts {
  readonly id: string;
  readonly kind: string | null;
  readonly about: string | null;
  readonly content: string | null;
  readonly saidAt: string | null;
  readonly speaker: string | null;
  readonly source: { readonly conversationId: string | null; readonly messageId: string | null; readonly words: string | null } | null;
  readonly pinned: boolean;
  readonly archived: boolean;
  readonly rating: number | null;
  readonly confidence: number;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface WholeMemory extends MemoryFacts {
  /** Whose it is; a pseudonym for an analyst. */
  readonly person: string;
  readonly subject: string | null;
  /** What a fact says, such as `penicillin`; null for other memories. */
  readonly value: string | null;
  readonly timesSaid: number | null;
  readonly current: boolean;
  readonly conflict: string | null;
  readonly history: readonly { readonly value: string; readonly saidAt: string }[];
}

/** What deleting a memory takes along. */
export interface Deletion {
  readonly memories: readonly WholeMemory[];
  readonly derived: readonly WholeMemory[];
  readonly utterances: readonly WholeMemory[];
}

export interface Lineage {
  readonly memory: WholeMemory;
  readonly restsOn: readonly WholeMemory[];
  readonly derived: readonly WholeMemory[];
  readonly changes: readonly { readonly number: number; readonly action: string; readonly actor: string; readonly createdAt: string }[];
  /** The cursors of further parts of `derived` and `changes`; null at their ends. */
  readonly nextDerived: string | null;
  readonly nextChanges: string | null;
  readonly uses: readonly { readonly traceId: string; readonly conversationId: string; readonly messageId: string | null; readonly action: string; readonly createdAt: string }[];
}

export interface Conflict {
  readonly about: string | null;
  readonly subject: string | null;
  readonly current: WholeMemory;
  readonly other: WholeMemory;
}

export interface TranscriptMessage {
  readonly id: string;
  readonly previousId: string | null;
  readonly role: string;
  readonly superseded: boolean;
  readonly content: string;
}

/** What the person noted about a message or an answer; about the whole conversation if `messageId` is null. */
export interface NoteText {
  readonly id: string;
  readonly messageId: string | null;
  readonly content: string;
}

/** Turns `first` to `last` moved to the archive. `turn` was being written then; null if it was by hand. */
export interface Rotation {
  readonly conversationId: string;
  readonly turn: number | null;
  readonly first: number;
  readonly last: number;
  readonly count: number;
  readonly createdAt: string;
}

export interface SafetyEventFacts {
  readonly id: string;
  readonly conversationId: string;
  readonly messageId: string;
  readonly turn: number | null;
  readonly stage: string;
  readonly kind: string;
  readonly tier: number;
  readonly certainty: string | null;
  readonly rules: readonly string[];
  readonly createdAt: string;
}
