/** Traces as rows of a table and of files. Pure functions only. */

import type { TraceFacts } from "../../api/types.ts";

const COLUMNS = ["id", "createdAt", "action", "memoryType", "label", "revision", "level", "utilization", "actor", "confidence", "conversationId", "messageId", "memoryId", "background", "reason"] as const satisfies readonly (keyof TraceFacts)[];
/** A spreadsheet would read a text that begins like this as a formula. */
const FORMULA = /^[=+\-@\t\r]/;

/** Live traces before those of the list, each once. */
export function merged(live: readonly TraceFacts[], listed: readonly TraceFacts[]): TraceFacts[] {
  const seen = new Set<string>();
  return [...live, ...listed].filter(({ id }) => !seen.has(id) && seen.add(id));
}

export function toCsv(rows: readonly TraceFacts[]): string {
  return [COLUMNS.join(","), ...rows.map((row) => COLUMNS.map((name) => cell(row[name])).join(","))].map((line) => `${line}\r\n`).join("");
}

export function toJsonLines(rows: readonly TraceFacts[]): string {
  return rows.map((row) => `${JSON.stringify(row)}\n`).join("");
}

function cell(value: string | number | boolean | null): string {
  const text = value === null ? "" : String(value);
  const safe = typeof value === "string" && FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
