/**
 * Every message of the protocol: its number, its fields, and a check of a body.
 *
 * `MESSAGES` is the table of `docs/protocol.md`, row by row. A field whose name ends in `?` may be missing. The types
 * are derived from the table, so that the check at run time and the compiler agree. Each body also has
 * `conversationId`, which the codec adds and the table does not list.
 */

/** The types of fields. A `map` has text as keys. Enumerations are text, because a newer server may have more values. */
interface Kinds {
  text: string;
  number: number;
  flag: boolean;
  bytes: Uint8Array;
  map: Readonly<Record<string, unknown>>;
  maps: readonly Readonly<Record<string, unknown>>[];
  texts: readonly string[];
  any: unknown;
}

type Fields = Readonly<Record<string, keyof Kinds>>;

const message = <const F extends Fields>(type: number, fields: F) => ({ type, fields });

export const MESSAGES = {
  ErrorMessage: message(1, {
    id: "text",
    code: "number",
    message: "text",
    severity: "number",
    recoverable: "flag",
    "originatingId?": "text",
  }),
  UserMessage: message(2, { id: "text", "previousId?": "text", content: "text", "timestamp?": "text" }),
  AssistantMessage: message(3, { id: "text", previousId: "text", content: "text", "timestamp?": "text", "safety?": "map", "trouble?": "text" }),
  ReasoningStep: message(5, { id: "text", messageId: "text", sequence: "number", content: "text" }),
  ToolUseRequest: message(6, {
    id: "text",
    messageId: "text",
    toolName: "text",
    parameters: "map",
    execution: "text",
    "timeoutMs?": "number",
  }),
  ToolUseResult: message(7, {
    id: "text",
    "requestId?": "text",
    success: "flag",
    "result?": "any",
    "errorCode?": "any",
    "errorMessage?": "text",
  }),
  Acknowledgement: message(8, { acknowledgedStanzaId: "number", success: "flag" }),
  Transcription: message(9, {
    id: "text",
    "previousId?": "text",
    text: "text",
    final: "flag",
    "confidence?": "number",
    "language?": "text",
  }),
  AudioChunk: message(10, {
    "trackSid?": "text",
    format: "text",
    durationMs: "number",
    "sequence?": "number",
    "data?": "bytes",
    "isLast?": "flag",
    "sentenceId?": "text",
  }),
  ControlStop: message(10, { "targetId?": "text", "reason?": "text", "stopType?": "text" }),
  ControlVariation: message(11, { targetId: "text", mode: "text", "newContent?": "text" }),
  Configuration: message(12, {
    "lastSequenceSeen?": "number",
    "clientVersion?": "text",
    "preferredLanguage?": "text",
    "timeZone?": "text",
    "device?": "text",
    "features?": "texts",
    "lastClientStanza?": "number",
    "lastServerStanza?": "number",
  }),
  StartAnswer: message(13, {
    id: "text",
    previousId: "text",
    "answerType?": "text",
    "plannedSentenceCount?": "number",
    "safety?": "map",
  }),
  MemoryTrace: message(14, {
    id: "text",
    "previousId?": "text",
    "messageId?": "text",
    memoryId: "text",
    "memoryType?": "text",
    action: "text",
    content: "text",
    "confidence?": "number",
    "relevance?": "number",
    "metadata?": "map",
  }),
  Commentary: message(15, { id: "text", "messageId?": "text", content: "text", "commentaryType?": "text" }),
  AssistantSentence: message(16, {
    id: "text",
    previousId: "text",
    sequence: "number",
    text: "text",
    isFinal: "flag",
    "safety?": "map",
    "trouble?": "text",
  }),
  SyncRequest: message(17, { messages: "maps" }),
  SyncResponse: message(18, { syncedMessages: "maps", syncedAt: "text" }),
  UserNote: message(22, {
    id: "text",
    "messageId?": "text",
    content: "text",
    "category?": "text",
    action: "text",
  }),
  NoteConfirmation: message(23, { requestId: "text", noteId: "text", "messageId?": "text", success: "flag" }),
  MemoryAction: message(24, { id: "text", action: "text", "memoryId?": "text", "memory?": "map" }),
  MemoryConfirmation: message(25, { requestId: "text", memoryId: "text", action: "text", success: "flag" }),
  ServerInfo: message(26, { model: "map", backend: "text", agents: "any", "notice?": "text" }),
} as const;

/** The name of a message in the protocol. */
export type Name = keyof typeof MESSAGES;

/** The messages that a client may send. Only the server sends the others. */
export type ClientName =
  | "UserMessage"
  | "ToolUseResult"
  | "AudioChunk"
  | "ControlStop"
  | "ControlVariation"
  | "Commentary"
  | "SyncRequest"
  | "UserNote"
  | "MemoryAction";

type Plain<T> = { [K in keyof T]: T[K] };

/** The body of a message: its fields and their types. */
export type Body<N extends Name> = BodyOf<(typeof MESSAGES)[N]["fields"]>;

type BodyOf<F> = Plain<
  { readonly [K in keyof F as K extends `${string}?` ? never : K]: Held<F[K]> } & {
    readonly [K in keyof F as K extends `${infer Bare}?` ? Bare : never]?: Held<F[K]>;
  }
>;
type Held<K> = K extends keyof Kinds ? Kinds[K] : never;

/** One message with its name, so that `switch (said.name)` narrows the type of the body. */
export type Said<N extends Name = Name> = { [One in N]: { readonly name: One; readonly body: Body<One> } }[N];

const IS: { readonly [K in keyof Kinds]: (value: unknown) => boolean } = {
  text: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  flag: (value) => typeof value === "boolean",
  bytes: (value) => value instanceof Uint8Array,
  map: isMap,
  maps: (value) => Array.isArray(value) && value.every(isMap),
  texts: (value) => Array.isArray(value) && value.every(IS.text),
  any: () => true,
};

/** Whether a value is a map with text as keys. */
export function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
}

/** Check a body against its type; null if the type is unknown or the body does not fit. */
export function parseMessage(type: number, body: Record<string, unknown>): Said | null {
  const name = nameOf(type, body);
  if (!name) return null;
  const fields: Fields = MESSAGES[name].fields;
  const plain = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
  for (const [one, other] of SYNONYMS[name] ?? []) {
    plain[one] ??= plain[other];
    plain[other] ??= plain[one];
    if (plain[one] !== plain[other]) return null;
  }
  for (const [field, kind] of Object.entries(fields)) {
    const value = plain[field.replace("?", "")];
    if (value === undefined ? !field.endsWith("?") : !IS[kind](value)) return null;
  }
  return { name, body: plain } as unknown as Said;
}

function nameOf(type: number, body: Record<string, unknown>): Name | undefined {
  if (type === 4) return "AudioChunk";
  if (type === 10) return "format" in body || "durationMs" in body || "duration" in body ? "AudioChunk" : "ControlStop";
  return (Object.keys(MESSAGES) as Name[]).find((name) => MESSAGES[name].type === type);
}

/** Fields with two names in the protocol: either is accepted, and both are filled in. */
const SYNONYMS: { readonly [N in Name]?: readonly (readonly [string, string])[] } = {
  MemoryTrace: [
    ["previousId", "messageId"],
    ["confidence", "relevance"],
  ],
  AssistantSentence: [["isFinal", "final"]],
  Transcription: [["final", "isFinal"]],
  AudioChunk: [["durationMs", "duration"]],
};
