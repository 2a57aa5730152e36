/** What differs between two texts. Pure functions only. */

import { diffLines } from "diff";

/** A line, and whether it is new or gone compared with an earlier text. */
export interface DiffLine {
  readonly text: string;
  readonly change: "added" | "removed" | null;
}

/** What differs between two texts, line by line. */
export function compare(before: readonly string[], after: readonly string[]): DiffLine[] {
  return diffLines(before.map(ended).join(""), after.map(ended).join("")).flatMap(({ value, added, removed }) =>
    value
      .replace(/\n$/, "")
      .split("\n")
      .map((text) => ({ text, change: added ? ("added" as const) : removed ? ("removed" as const) : null })),
  );
}

const ended = (line: string) => `${line}\n`;
