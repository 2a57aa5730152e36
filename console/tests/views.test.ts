import { describe, expect, test } from "vitest";
import type { Candidate, TraceFacts } from "../src/api/types.ts";
import { address } from "../src/api/http.ts";
import { conversationIn } from "../src/page/address.ts";
import { actor, count, dayOrTime, milliseconds } from "../src/parts/format.ts";
import { columns, dropText, signals } from "../src/views/journey/stages.ts";
import { dayRange, everyDay, inOrder, startOf } from "../src/views/overview/days.ts";
import { merged } from "../src/views/traces/rows.ts";
import { spans, stationSpans } from "../src/views/why/spans.ts";

const trace = (id: string, changes: Partial<TraceFacts> = {}): TraceFacts => ({
  id,
  conversationId: "conv_1",
  messageId: null,
  memoryId: "mem_1",
  memoryType: "fact",
  action: "retrieved",
  actor: "context_extractor",
  confidence: 0.5,
  label: null,
  revision: null,
  level: null,
  utilization: null,
  background: false,
  reason: null,
  createdAt: "2026-11-18T10:00:00.000Z",
  ...changes,
});

describe("traces", () => {
  test("that come live and in the list are shown once", () => {
    expect(merged([trace("c"), trace("b")], [trace("b"), trace("a")]).map(({ id }) => id)).toEqual(["c", "b", "a"]);
  });
});

describe("a search", () => {
  const candidate = (memoryId: string, stage: string, position: number): Candidate => ({
    memoryId,
    stage,
    position,
    content: memoryId,
    kind: "fact",
    score: 0.5,
    signals: { words: 0.2, vector: 0.4, recency: 0 },
    tokens: 5,
    role: null,
    dropped: null,
  });

  test("has a column per stage, best first", () => {
    const found = columns([candidate("b", "final", 2), candidate("c", "candidate", 3), candidate("a", "final", 1)]);

    expect(found.map(({ stage, items }) => [stage, items.map(({ memoryId }) => memoryId)])).toEqual([
      ["candidate", ["c"]],
      ["included", []],
      ["final", ["a", "b"]],
    ]);
  });

  test("shows the signals that count, strongest first", () => {
    expect(signals(candidate("a", "final", 1))).toEqual([
      { name: "vector", value: 0.4, share: 1 },
      { name: "words", value: 0.2, share: 0.5 },
    ]);
  });

  test("says in words why a memory was left out, also for a reason that it does not know", () => {
    expect(dropText({ at: "assembly", why: "budget" })).toBe("it did not fit into the budget (assembly)");
    expect(dropText({ at: "turn", why: "some_new_reason" })).toBe("some new reason (turn)");
  });
});

test("the bars of a turn last from one moment to the next", () => {
  const step = (name: string, milliseconds: number) => ({ name, milliseconds, at: "" });

  expect(spans([step("received", 0), step("first_sentence", 90), step("started", 10)])).toEqual([
    { name: "Waiting for its turn", start: 0, end: 10 },
    { name: "Understanding, first sentence", start: 10, end: 90 },
  ]);
  expect(stationSpans([{ name: "recall", start: 20, milliseconds: 5 }])).toEqual([{ name: "Recall", start: 20, end: 25 }]);
});

describe("the overview", () => {
  test("shows days without anything, too", () => {
    expect(everyDay("2026-11-16T00:00:00Z", "2026-11-18T09:00:00Z")).toEqual(["2026-11-16", "2026-11-17", "2026-11-18"]);
    expect(startOf(3, new Date("2026-11-18T09:00:00Z"))).toBe("2026-11-16T00:00:00.000Z");
    expect(dayRange("2026-11-18")).toEqual({ since: "2026-11-18T00:00:00Z", until: "2026-11-18T23:59:59.999Z" });
  });

  test("lists stations as a turn passes them", () => {
    expect(inOrder([{ name: "write" }, { name: "new" }, { name: "read" }]).map(({ name }) => name)).toEqual(["read", "write", "new"]);
  });
});

test("values are shown as people read them", () => {
  expect(dayOrTime("2026-11-17T10:00:00Z", new Date("2026-11-18T10:00:00Z"))).toBe("17 Nov 2026");
  expect([actor("GENERAL_HEALTH"), actor("person:ann")]).toEqual(["General health", "person:ann"]);
  expect([milliseconds(12.4), milliseconds(1234), count(1, "turn"), count(2, "turn")]).toEqual(["12 ms", "1.2 s", "1 turn", "2 turns"]);
});

test("an address leaves out what is not given", () => {
  expect(address("/v1/traces", { action: "stored", actor: "", label: undefined, limit: 5 })).toBe("/v1/traces?action=stored&limit=5");
});

test("the address of a conversation names it, and other views name none", () => {
  expect(["/", "/chat/conv_1", "/chat/conv_1/blocks", "/memory"].map(conversationIn)).toEqual(["", "conv_1", null, null]);
});
