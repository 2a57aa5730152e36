/** Which turns moved old turns to the archive. Pure functions only. */

import type { ArchivedTurnFacts, RevisionFacts } from "../../api/types.ts";

export interface Rotation {
  /** The turn that wrote the history then; null if it was archived by hand, or is not known. */
  readonly turn: number | null;
  readonly first: number;
  readonly last: number;
}

/** Turns that were archived at the same moment left together. The first revision after that moment is of the same write. */
export function rotations(archived: readonly ArchivedTurnFacts[], revisions: readonly RevisionFacts[]): Rotation[] {
  const moments = new Set(archived.map(({ archivedAt }) => archivedAt));
  const inOrder = [...revisions].sort((one, other) => one.revision - other.revision);
  return [...moments].map((at) => {
    const ids = archived.filter(({ archivedAt }) => archivedAt === at).map(({ turnId }) => turnId);
    const written = inOrder.find(({ createdAt }) => Date.parse(createdAt) >= Date.parse(at));
    return { turn: written?.turn ?? null, first: Math.min(...ids), last: Math.max(...ids) };
  });
}
