import { describe, expect, test } from "vitest";
import { fold, isAwaited, recalledMemories, type Transcript } from "../src/chat/transcript.ts";
import type { Entry, Fate } from "../src/protocol/index.ts";
import type { Said } from "../src/protocol/messages.ts";

const ACKNOWLEDGED: Fate = { state: "acknowledged", success: true };

const ours = (said: Entry["said"], fate: Fate = ACKNOWLEDGED) =>
  ({ from: "client", key: "k", number: 2, after: 0, said, fate }) as Entry;
const asked = (id: string, fate: Fate = ACKNOWLEDGED) => ours({ name: "UserMessage", body: { id, content: `about ${id}` } }, fate);
const heard = (said: Said): Entry => ({ from: "server", number: 1, said });
const started = (id: string, previousId: string, safety?: object) =>
  heard({ name: "StartAnswer", body: { id, previousId, ...(safety && { safety: { ...safety } }) } });
const sentence = (previousId: string, sequence: number, text: string, isFinal = false) =>
  heard({ name: "AssistantSentence", body: { id: `sent_${sequence}`, previousId, sequence, text, isFinal } });
const trace = (id: string, previousId?: string) =>
  heard({ name: "MemoryTrace", body: { id, memoryId: "mem", action: "retrieved", content: "…", ...(previousId && { previousId }) } });
const failed = (originatingId: string) =>
  heard({
    name: "ErrorMessage",
    body: { id: "err", code: 501, message: "Cut off.", severity: 2, recoverable: true, originatingId },
  });

const after = (...entries: Entry[]): Transcript => entries.reduce(fold, []);

describe("a turn", () => {
  test("is a question with its answer and its traces", () => {
    const transcript = after(
      asked("msg_1"),
      started("msg_a", "msg_1"),
      trace("trace_1", "msg_1"),
      sentence("msg_a", 1, "Since when?"),
      trace("trace_2", "msg_1"),
      sentence("msg_a", 2, "How bad?", true),
    );

    expect(transcript).toMatchObject([
      {
        question: { text: "about msg_1", state: "delivered" },
        answers: [{ sentences: [{ text: "Since when?" }, { text: "How bad?" }], progress: "done", safety: null }],
        traces: [{ id: "trace_1" }, { id: "trace_2" }],
        failure: "",
      },
    ]);
  });

  test("keeps its place when another message was sent before it ended", () => {
    const transcript = after(
      asked("msg_1"),
      asked("msg_2"),
      started("msg_a", "msg_1"),
      sentence("msg_a", 1, "one", true),
      started("msg_b", "msg_2"),
      sentence("msg_b", 1, "two", true),
    );

    expect(transcript.map(({ id, answers }) => [id, answers[0]?.sentences[0]?.text])).toEqual([
      ["msg_1", "one"],
      ["msg_2", "two"],
    ]);
  });

  test("of another device is shown without its question", () => {
    expect(after(started("msg_a", "msg_x"), sentence("msg_a", 1, "hello", true))).toMatchObject([
      { id: "msg_x", question: null, answers: [{ progress: "done" }] },
    ]);
  });

  test("without streaming is one sentence", () => {
    const whole = heard({ name: "AssistantMessage", body: { id: "msg_a", previousId: "msg_1", content: "All of it." } });

    expect(after(asked("msg_1"), whole)).toMatchObject([{ answers: [{ sentences: [{ text: "All of it." }], progress: "done" }] }]);
  });

  test("that failed says what is to be asked for again: the answer that was cut off, or the message", () => {
    const cut = [asked("msg_1"), started("msg_a", "msg_1"), failed("msg_1")];
    const again = [...cut, started("msg_b", "msg_1"), failed("msg_1")];

    for (const [entries, target] of [
      [[asked("msg_1"), failed("msg_1")], "msg_1"],
      [cut, "msg_a"],
      [again, "msg_b"],
      [[...again, failed("msg_1")], "msg_1"],
    ] as const)
      expect(after(...entries)[0]?.failed).toBe(target);
  });

  test("about safety says of which kind", () => {
    const [exchange] = after(asked("msg_1"), started("msg_a", "msg_1", { kind: "emergency", tier: 1 }));

    expect(exchange?.answers[0]?.safety).toEqual({ kind: "emergency", tier: "1", certainty: "certain" });
  });

  test("is about safety from the sentence on that says so", () => {
    const danger = { id: "sent_1", previousId: "msg_a", sequence: 1, text: "Call.", isFinal: false, safety: { kind: "crisis", tier: 2, certainty: "possible" } };
    const transcript = after(
      asked("msg_1"),
      started("msg_a", "msg_1"),
      heard({ name: "AssistantSentence", body: danger }),
      sentence("msg_a", 2, "Are you safe?", true),
    );

    expect(transcript[0]?.answers[0]?.safety).toEqual({ kind: "crisis", tier: "2", certainty: "possible" });
  });

  test("that comes whole is about safety, too", () => {
    const body = { id: "msg_a", previousId: "msg_1", content: "Call.", safety: { kind: "emergency", tier: 3 } };

    const [exchange] = after(asked("msg_1"), heard({ name: "AssistantMessage", body }));

    expect(exchange?.answers[0]?.safety).toEqual({ kind: "emergency", tier: "3", certainty: "certain" });
  });

  test("that the model did not give says why", () => {
    const last = { id: "sent_2", previousId: "msg_a", sequence: 2, text: "Rest.", isFinal: true, trouble: "http_503" };
    const begun = [asked("msg_1"), started("msg_a", "msg_1"), sentence("msg_a", 1, "Well.")];

    expect(after(...begun)[0]?.answers[0]?.trouble).toBeNull();
    const [exchange] = after(...begun, heard({ name: "AssistantSentence", body: last }));
    expect(exchange?.answers[0]).toMatchObject({ progress: "done", trouble: "http_503" });
  });

  test("asked for again has two answers", () => {
    const transcript = after(asked("msg_1"), started("msg_a", "msg_1"), failed("msg_1"), started("msg_b", "msg_1"));

    expect(transcript).toMatchObject([{ answers: [{ progress: "cut" }, { progress: "running" }], failure: "" }]);
  });
});

describe("an end", () => {
  test("by an error cuts the answer and says why", () => {
    const [exchange] = after(asked("msg_1"), started("msg_a", "msg_1"), sentence("msg_a", 1, "I"), failed("msg_1"));

    expect(exchange).toMatchObject({ answers: [{ progress: "cut", sentences: [{ text: "I" }] }], failure: "Cut off." });
  });

  const stop = (targetId: string, success = true) =>
    ours({ name: "ControlStop", body: { targetId } }, { state: "acknowledged", success });
  const [start, first, last] = [started("msg_a", "msg_1"), sentence("msg_a", 1, "I"), sentence("msg_a", 2, "", true)];

  test.each<[string, string, Entry[]]>([
    ["before it began", "stopped", [stop("msg_1"), start, first, last]],
    ["while it runs", "stopped", [start, first, stop("msg_a"), last]],
    ["heard of after its end", "stopped", [start, first, last, stop("msg_a")]],
    ["too late", "done", [start, first, last, stop("msg_a", false)]],
  ])("by a stop %s leaves it %s", (_, progress, entries) => {
    expect(after(asked("msg_1"), ...entries)).toMatchObject([{ answers: [{ progress, sentences: [{ text: "I" }] }] }]);
  });

  test("by a stop goes by once", () => {
    const again = [started("msg_b", "msg_1"), sentence("msg_b", 1, "Whole.", true)];

    const transcript = after(asked("msg_1"), start, first, stop("msg_a"), last, ...again);

    expect(transcript).toMatchObject([{ answers: [{ progress: "stopped" }, { progress: "done" }] }]);
  });
});

describe("an answer is awaited", () => {
  const waiting: Fate = { state: "waiting" };

  test.each<[string, boolean, Entry[]]>([
    ["not before the message arrived", false, [asked("m", waiting)]],
    ["once the message arrived", true, [asked("m")]],
    ["while it runs", true, [asked("m"), started("a", "m")]],
    ["not when it has ended", false, [asked("m"), started("a", "m"), sentence("a", 1, "x", true)]],
    ["not when it failed", false, [asked("m"), failed("m")]],
    ["not when the message was refused", false, [asked("m", { state: "refused", code: 103, message: "Too long." })]],
  ])("%s", (_, expected, entries) => {
    expect(after(...entries).some(isAwaited)).toBe(expected);
  });
});

test("a message that is sent, then acknowledged, is one message", () => {
  expect(after(asked("msg_1", { state: "waiting" }), asked("msg_1"))).toHaveLength(1);
});

test("a trace that names no message belongs to the latest", () => {
  expect(after(asked("msg_1"), asked("msg_2"), trace("trace_1"))).toMatchObject([{ traces: [] }, { traces: [{}] }]);
});

describe("an edited message", () => {
  const edit = (fate: Fate = ACKNOWLEDGED) => ours({ name: "ControlVariation", body: { targetId: "msg_1", mode: "edit", newContent: "a better text" } }, fate);
  const first = [asked("msg_1"), started("msg_a", "msg_1"), sentence("msg_a", 1, "one", true)];

  test("stands after the old one, and is awaited until its answer comes", () => {
    const transcript = after(...first, edit());

    expect(transcript).toMatchObject([{ superseded: true }, { superseded: false, question: { text: "a better text" } }]);
    expect(transcript.map(isAwaited)).toEqual([false, true]);
  });

  test("gets the id that the server gave it", () => {
    const transcript = after(...first, edit(), started("msg_b", "msg_2"), sentence("msg_b", 1, "two", true));

    expect(transcript).toMatchObject([{ id: "msg_1" }, { id: "msg_2", question: { text: "a better text" }, answers: [{ id: "msg_b" }] }]);
  });

  test("changes nothing while it is on its way, or if it is refused", () => {
    expect(after(...first, edit({ state: "waiting" }))).toMatchObject([{ superseded: false }]);
    expect(after(...first, edit({ state: "refused", code: 203, message: "No." }))).toMatchObject([{ superseded: false }]);
  });
});

test("the memories of an answer are counted once each, without blocks and writes", () => {
  const memory = (id: string, memoryId: string, action: string, memoryType: string) =>
    heard({ name: "MemoryTrace", body: { id, memoryId, memoryType, action, content: "…", previousId: "msg_1" } });
  const [exchange] = after(
    asked("msg_1"),
    memory("t1", "mem_1", "retrieved", "fact"),
    memory("t2", "mem_1", "retrieved", "fact"),
    memory("t3", "mem_2", "retrieved", "utterance"),
    memory("t4", "mem_3", "retrieved", "memory_block"),
    memory("t5", "mem_4", "stored", "fact"),
  );

  expect(exchange && recalledMemories(exchange)).toBe(2);
});

test("a note belongs to the exchange of its answer, and is shown once whatever its state", () => {
  const note = (fate: Fate) => ours({ name: "UserNote", body: { id: "note_1", messageId: "msg_a", content: "not true", action: "create" } }, fate);
  const transcript = after(asked("msg_1"), started("msg_a", "msg_1"), note({ state: "waiting" }), note(ACKNOWLEDGED), asked("msg_2"));

  expect(transcript.map(({ notes }) => notes)).toEqual([[{ id: "note_1", text: "not true", state: "delivered" }], []]);
});
