/** A memory block as lines that people read. Pure functions only. */

import type { Label, WholeBlock } from "../../api/types.ts";
import { actor, capital, words } from "../../parts/format.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The lines of a block. A field that this page does not know is shown by its name. */
export function readable({ label, value, text }: Pick<WholeBlock, "label" | "value" | "text">): string[] {
  if (value === null) return text.split("\n").map((line) => line.trimEnd());
  const known: Partial<Record<Label, (value: Fields) => string[]>> = { conversation_history: history, active_session: session, memory_metadata: metadata };
  return known[label]?.(value) ?? flat(value);
}

function history(value: Fields): string[] {
  const turns = list(value["turns"]);
  if (turns.length === 0) return ["No turns yet."];
  return turns.flatMap((turn, index) => [...(index > 0 ? [""] : []), ...oneTurn(turn)]);
}

/** A turn of the history, also one in the archive. */
export function oneTurn(turn: Fields): string[] {
  const [message, enrichment, intent, response] = ["user_message", "context_enrichment", "intent_classification", "agent_response"].map((name) => map(turn[name]));
  const understood = enrichment?.["enriched_message"];
  const confidence = intent?.["confidence"];
  return [
    `Turn ${turn["turn_id"]}${turn["corrected"] === true ? ", corrected later" : ""}`,
    `Person: ${message?.["content"] ?? ""}`,
    ...(understood ? [`Understood as: ${understood}`] : []),
    ...(intent?.["intent"] ? [`Intent: ${actor(String(intent["intent"]))}${typeof confidence === "number" ? `, ${Math.round(confidence * 100)} % sure` : ""}`] : []),
    ...(response?.["content"] ? [`${actor(String(response["agent_type"] ?? "answer"))}: ${response["content"]}`] : []),
  ];
}

function session(value: Fields): string[] {
  const { session_info: info, conversation_state: state, agent_context: agents, facts, schema_version: _, session_metadata: __, ...rest } = value;
  const topic = map(state)["active_topic"];
  return [
    ...line("State", map(info)["status"]),
    ...line("Topic", topic),
    ...line("Phase", map(state)["conversation_phase"]),
    ...line("Specialist", map(agents)["primary_agent"]),
    ...list(facts).map(fact),
    ...flat(rest),
  ];
}

function fact(fact: Fields): string {
  const about = fact["about"] ? ` of ${words(String(fact["about"]))}` : "";
  const subject = fact["subject"] && fact["subject"] !== "self" ? ` (${words(String(fact["subject"]))})` : "";
  const turn = fact["turn"] === undefined ? "" : `, turn ${fact["turn"]}`;
  return `${capital(words(String(fact["kind"] ?? "fact")))}${about}${subject}: ${String(fact["value"] ?? "")}${turn}`;
}

function metadata(value: Fields): string[] {
  const { memory_usage: usage, archival_info: archival, schema_version: _, performance_metrics: __, ...rest } = value;
  const blocks = Object.entries(map(usage)).map(([label, use]) => {
    const { current_size: size, limit, utilization_percent: percent, turns_stored: turns } = map(use);
    return `${capital(words(label))}: ${size} of ${limit} characters, ${percent} %${turns === undefined ? "" : `, ${turns} turns`}`;
  });
  return [...blocks, ...line("Archived turns", map(archival)["total_archived_turns"]), ...flat(rest)];
}

/** Any fields as "name, name: value". */
function flat(value: unknown, path: readonly string[] = []): string[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => flat(item, [...path, String(index + 1)]));
  if (typeof value === "object" && value !== null) return Object.entries(value).flatMap(([name, item]) => flat(item, [...path, words(name)]));
  return [`${capital(path.join(", "))}: ${value === null ? "none" : typeof value === "boolean" ? (value ? "yes" : "no") : String(value)}`];
}

const line = (name: string, value: unknown): string[] => (value === undefined || value === null || value === "" ? [] : [`${name}: ${tidy(String(value))}`]);

const tidy = (text: string) => (/^[A-Z_]+$/.test(text) ? actor(text) : words(text));

const map = (value: unknown): Fields => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {});

const list = (value: unknown): Fields[] => (Array.isArray(value) ? value.map(map) : []);
