import { describe, expect, test, vi } from "vitest";
import { getAll } from "../src/api/http.ts";
import type { Rotation } from "../src/api/types.ts";
import { compare } from "../src/parts/compare.ts";
import { marks } from "../src/views/blocks/marks.ts";
import { readable } from "../src/views/blocks/readable.ts";

const turn = (turn_id: number, content: string) => ({
  turn_id,
  user_message: { content },
  context_enrichment: { enriched_message: `User says ${content}` },
  intent_classification: { intent: "GENERAL_HEALTH", confidence: 0.934 },
  agent_response: { agent_type: "GENERAL_HEALTH", content: "Since when?" },
});

describe("a block as people read it", () => {
  test("shows each turn of the history with what was understood and answered", () => {
    expect(readable({ label: "conversation_history", text: "", value: { turns: [turn(1, "my head hurts")] } })).toEqual([
      "Turn 1",
      "Person: my head hurts",
      "Understood as: User says my head hurts",
      "Intent: General health, 93 % sure",
      "General health: Since when?",
    ]);
  });

  test("shows the facts of a session with their turns", () => {
    const facts = [
      { kind: "concern", value: "headache", turn: 1 },
      { kind: "severity", value: "8/10", turn: 2, about: "headache" },
      { kind: "allergies", value: "penicillin", turn: 4, subject: "daughter" },
    ];
    expect(readable({ label: "active_session", text: "", value: { session_info: { status: "ACTIVE" }, facts } })).toEqual([
      "State: Active",
      "Concern: headache, turn 1",
      "Severity of headache: 8/10, turn 2",
      "Allergies (daughter): penicillin, turn 4",
    ]);
  });

  test("shows a field that it does not know by its name", () => {
    expect(readable({ label: "memory_metadata", text: "", value: { system_flags: { emergency_mode: false } } })).toEqual(["System flags, emergency mode: no"]);
  });

  test("shows the summary as it is", () => {
    expect(readable({ label: "context_summary", text: "=== SUMMARY ===\nTopic: head", value: null })).toEqual(["=== SUMMARY ===", "Topic: head"]);
  });
});

test("a comparison marks what was added and what was removed", () => {
  expect(compare(["same", "old"], ["same", "new", "more"])).toEqual([
    { text: "same", change: null },
    { text: "old", change: "removed" },
    { text: "new", change: "added" },
    { text: "more", change: "added" },
  ]);
});

describe("more than 200 rotations", () => {
  const rotation = (turn: number): Rotation => ({ conversationId: "conv_1", turn, first: turn * 10, last: turn * 10 + 9, count: 10, createdAt: `${turn}` });
  const all = Array.from({ length: 250 }, (_, index) => rotation(index + 1));

  test("are read page by page", async () => {
    const asked: string[] = [];
    vi.stubGlobal("fetch", (path: string) => {
      asked.push(path);
      const from = Number(new URLSearchParams(path.split("?")[1]).get("cursor") ?? 0);
      const next = from + 200 < all.length ? String(from + 200) : null;
      return Promise.resolve(Response.json({ items: all.slice(from, from + 200), next }));
    });

    const found = await getAll<Rotation>("/v1/rotations", { conversation: "conv_1" });
    vi.unstubAllGlobals();

    expect(found).toEqual(all);
    expect(asked).toHaveLength(2);
  });

  test("are marks at their turns; those by hand have none", () => {
    const found = marks([...all, { ...rotation(1), turn: null }], 250);

    expect(found.map(({ turn }) => turn)).toEqual(all.map(({ turn }) => turn));
    expect([found[0]?.at, found.at(-1)?.at]).toEqual([0, 1]);
  });
});
