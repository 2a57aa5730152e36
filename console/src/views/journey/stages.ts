/** A search's candidates by how far they came. Pure functions only. */

import type { Candidate } from "../../api/types.ts";
import { words } from "../../parts/format.ts";

const STAGES = ["candidate", "included", "final"] as const;
export type Stage = (typeof STAGES)[number];

/** The candidates of each stage, best first. Each is in the last stage that it reached. */
export function columns(candidates: readonly Candidate[]): { stage: Stage; items: Candidate[] }[] {
  return STAGES.map((stage) => ({ stage, items: candidates.filter((one) => one.stage === stage).sort((one, other) => one.position - other.position) }));
}

/** The signals that are not zero, strongest first; `share` is relative to the strongest. */
export function signals({ signals: all }: Candidate): { name: string; value: number; share: number }[] {
  const strongest = Math.max(1e-9, ...Object.values(all).map(Math.abs));
  return Object.entries(all)
    .filter(([, value]) => value !== 0)
    .sort(([, one], [, other]) => Math.abs(other) - Math.abs(one))
    .map(([name, value]) => ({ name: words(name), value, share: Math.abs(value) / strongest }));
}

const REASONS: Readonly<Record<string, string>> = {
  budget: "it did not fit into the budget",
  repeats_another: "it repeats another memory",
  part_of_another: "another memory contains it",
  beyond_limit: "there were better ones",
  in_history: "it is still in the history of this conversation",
};

/** Why a memory was left out, and where. */
export function dropText({ at, why }: { readonly at: string; readonly why: string }): string {
  return `${REASONS[why] ?? words(why)} (${words(at)})`;
}
