/** Where rotations are on the slider over the turns. Pure functions only. */

import type { Rotation } from "../../api/types.ts";

export interface Mark {
  readonly turn: number;
  /** From 0 at the first turn to 1 at the last one. */
  readonly at: number;
}

/** A mark for each turn that moved old turns to the archive. What was archived by hand belongs to no turn. */
export function marks(rotations: readonly Rotation[], turns: number): Mark[] {
  const known = new Set(rotations.map(({ turn }) => turn).filter((turn) => turn !== null));
  return [...known].sort((one, other) => one - other).map((turn) => ({ turn, at: turns > 1 ? (turn - 1) / (turns - 1) : 0 }));
}
