/** Traces as rows of a table. Pure functions only. */

import type { TraceFacts } from "../../api/types.ts";

/** Live traces before those of the list, each once. */
export function merged(live: readonly TraceFacts[], listed: readonly TraceFacts[]): TraceFacts[] {
  const seen = new Set<string>();
  return [...live, ...listed].filter(({ id }) => !seen.has(id) && seen.add(id));
}
