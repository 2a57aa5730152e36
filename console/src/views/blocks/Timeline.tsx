/** A slider over the turns of a conversation, with the turns in which old turns were archived. */

import * as Slider from "@radix-ui/react-slider";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { get, type Page } from "../../api/http.ts";
import type { ArchivedTurnFacts, RevisionFacts } from "../../api/types.ts";
import { count } from "../../parts/format.ts";
import { rotations } from "./rotations.ts";

const PAUSE_MS = 150;

interface TimelineProps {
  conversationId: string;
  turns: number;
  turn: number;
  onChoose: (turn: number) => void;
}

export function Timeline({ conversationId, turns, turn, onChoose }: TimelineProps) {
  const [shown, setShown] = useState(turn);
  useEffect(() => setShown(turn), [turn]);
  // A slider that is dragged passes many turns; only where it rests is read.
  useEffect(() => {
    if (shown === turn) return;
    const timer = setTimeout(() => onChoose(shown), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [shown, turn, onChoose]);
  const rotated = useRotations(conversationId);
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
          </Slider.Track>
          <Slider.Thumb className="slider-thumb" aria-label="Turn" />
        </Slider.Root>
      )}
      {rotated.length > 0 && (
        <ul className="rotations">
          {rotated.map(({ turn: at, first, last }) => (
            <li key={`${at} ${first}`}>
              <button type="button" className="quiet" onClick={() => at !== null && onChoose(at)} disabled={at === null}>
                {at === null ? "By hand" : `Turn ${at}`}: {count(last - first + 1, "turn")} ({first} to {last}) moved to the archive
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function useRotations(conversationId: string) {
  const found = useQuery({
    queryKey: ["rotations", conversationId],
    queryFn: async ({ signal }) => {
      const path = `/v1/conversations/${conversationId}`;
      const [archived, revisions] = await Promise.all([
        get<Page<ArchivedTurnFacts>>(`${path}/archived-turns`, { limit: 200 }, signal),
        get<Page<RevisionFacts>>(`${path}/blocks/conversation_history/revisions`, { limit: 200 }, signal),
      ]);
      return rotations(archived.items, revisions.items);
    },
  });
  return found.data ?? [];
}
