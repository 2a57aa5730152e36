/** The moments of a turn as bars of a waterfall. Pure functions only. */

import type { Explanation, Station } from "../../api/types.ts";
import { capital, words } from "../../parts/format.ts";

/** A bar: what ran, from when to when, in milliseconds after the message. */
export interface Span {
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

const NAMES: Readonly<Record<string, string>> = {
  started: "Waiting for its turn",
  memory_read: "Reading memory",
  first_sentence: "Understanding, first sentence",
  memory_written: "Answering, writing memory",
  last_sentence: "Last sentence",
  ended: "Closing the turn",
};

/** Each bar lasts from one moment to the next one. */
export function spans(steps: Explanation["steps"]): Span[] {
  const inOrder = [...steps].sort((one, other) => one.milliseconds - other.milliseconds);
  return inOrder.slice(1).map((step, index) => ({
    name: NAMES[step.name] ?? step.name.replaceAll("_", " "),
    start: inOrder[index]?.milliseconds ?? 0,
    end: step.milliseconds,
  }));
}

/** The stations of a turn, by what they do. */
export function stationSpans(stations: readonly Station[]): Span[] {
  return stations.map(({ name, start, milliseconds }) => ({ name: capital(words(name)), start, end: start + milliseconds }));
}
