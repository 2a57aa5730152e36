import { describe, expect, test } from "vitest";
import { compare } from "../src/parts/compare.ts";
import { rotations } from "../src/views/blocks/rotations.ts";
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

test("turns that were archived together are one rotation, in the turn that wrote the history then", () => {
  const archived = [1, 2, 3].map((turnId) => ({ turnId, size: 1, archivedAt: "2026-11-18T10:00:00.000Z" }));
  const revision = (number: number, turn: number, createdAt: string) => ({ revision: number, turn, createdAt, size: 1, digest: "", actor: "context_extractor" });

  const found = rotations(archived, [revision(32, 32, "2026-11-18T10:00:00.005Z"), revision(31, 31, "2026-11-18T09:00:00.000Z")]);

  expect(found).toEqual([{ turn: 32, first: 1, last: 3 }]);
});
