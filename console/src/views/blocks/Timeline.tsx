/** A slider over the turns of a conversation, with the turns in which old turns were archived. */

import * as Slider from "@radix-ui/react-slider";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { getAll } from "../../api/http.ts";
import type { Rotation } from "../../api/types.ts";
import { count } from "../../parts/format.ts";
import { marks } from "./marks.ts";

const PAUSE_MS = 150;
const LISTED = 5;
/** The thumb stays within the track, so its middle is half of its width from either end. */
const THUMB_REM = 1.2;

interface TimelineProps {
  conversationId: string;
  isOwn: boolean;
  turns: number;
  turn: number;
  onChoose: (turn: number) => void;
}

export function Timeline({ conversationId, isOwn, turns, turn, onChoose }: TimelineProps) {
  const [shown, setShown] = useState(turn);
  useEffect(() => setShown(turn), [turn]);
  // A slider that is dragged passes many turns; only where it rests is read.
  useEffect(() => {
    if (shown === turn) return;
    const timer = setTimeout(() => onChoose(shown), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [shown, turn, onChoose]);
  const rotated = useRotations(conversationId, isOwn);
  return (
    <div className="timeline">
      <div className="timeline-line">
        <span id="turn-label">
          After turn <b>{shown}</b> of {turns}
        </span>
        <button type="button" onClick={() => onChoose(Math.max(1, turn - 1))} disabled={turn <= 1}>
          Earlier
        </button>
        <button type="button" onClick={() => onChoose(Math.min(turns, turn + 1))} disabled={turn >= turns}>
          Later
        </button>
      </div>
      {turns > 1 && (
        <Slider.Root className="slider" min={1} max={turns} step={1} value={[shown]} onValueChange={([next = turns]) => setShown(next)}>
          <Slider.Track className="slider-track">
            <Slider.Range className="slider-range" />
            {marks(rotated, turns).map(({ turn: at, at: share }) => (
              <span key={at} className="slider-mark" title={`Turn ${at} moved old turns to the archive`} style={{ left: `calc(${share * 100}% + ${(0.5 - share) * THUMB_REM}rem)` }} />
            ))}
          </Slider.Track>
          <Slider.Thumb className="slider-thumb" aria-label="Turn" />
        </Slider.Root>
      )}
      {rotated.length > 0 && (
        <details open={rotated.length <= LISTED}>
          <summary>{count(rotated.length, "rotation")}: old turns that moved to the archive</summary>
          <ul className="rotations">
            {rotated.map(({ turn: at, first, last, count: moved, createdAt }) => (
              <li key={createdAt}>
                <button type="button" className="quiet" onClick={() => at !== null && onChoose(at)} disabled={at === null}>
                  {at === null ? "By hand" : `Turn ${at}`}: {count(moved, "turn")} ({first} to {last})
                </button>
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

function useRotations(conversationId: string, isOwn: boolean): readonly Rotation[] {
  const found = useQuery({
    queryKey: ["rotations", conversationId],
    queryFn: ({ signal }) => getAll<Rotation>("/v1/rotations", { conversation: conversationId, of: isOwn ? "me" : "all" }, signal),
  });
  return found.data ?? [];
}
