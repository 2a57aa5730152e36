/** Turns that have left the history block. Each is read when it is opened. */

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get, type Page } from "../../api/http.ts";
import type { ArchivedTurn, ArchivedTurnFacts } from "../../api/types.ts";
import { Diff } from "../../parts/Diff.tsx";
import { Failed, Loaded, Loading } from "../../parts/States.tsx";
import { moment } from "../../parts/format.ts";
import { oneTurn } from "./readable.ts";

export function ArchivedTurns({ conversationId }: { conversationId: string }) {
  const path = `/v1/conversations/${conversationId}/archived-turns`;
  const found = useInfiniteQuery({
    queryKey: ["archived turns", conversationId],
    queryFn: ({ pageParam, signal }) => get<Page<ArchivedTurnFacts>>(path, { limit: 50, cursor: pageParam }, signal),
    initialPageParam: "",
    getNextPageParam: ({ next }) => next ?? undefined,
  });
  if (found.error && !found.data) return <Failed what="the archived turns" error={found.error} onRetry={() => void found.refetch()} />;
  if (!found.data) return <Loading what="the archived turns" />;
  const turns = found.data.pages.flatMap(({ items }) => items);
  return (
    <section className="archived" aria-label="Archived turns">
      <h3>Archived turns</h3>
      {turns.length === 0 && <p className="quiet-text">No turn has been archived. The oldest turns move here when the history is long: usually after 20 turns, or when it is 85 % full.</p>}
      {turns.map((turn) => (
        <OneArchived key={turn.turnId} path={path} turn={turn} />
      ))}
      {found.hasNextPage && (
        <button type="button" onClick={() => void found.fetchNextPage()}>
          Show more
        </button>
      )}
    </section>
  );
}

function OneArchived({ path, turn: { turnId, archivedAt } }: { path: string; turn: ArchivedTurnFacts }) {
  const [open, setOpen] = useState(false);
  const turn = useQuery({
    queryKey: ["archived turn", path, turnId],
    queryFn: ({ signal }) => get<ArchivedTurn>(`${path}/${turnId}`, {}, signal),
    enabled: open,
    staleTime: Infinity,
  });
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        Turn {turnId}, archived {moment(archivedAt)}
      </summary>
      {open && (
        <Loaded query={turn} what="the turn">
          {({ value }) => <Diff lines={oneTurn(value).map((text) => ({ text, change: null }))} />}
        </Loaded>
      )}
    </details>
  );
}
