/** Memories that contradict each other, side by side. */

import { useInfiniteQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { get, type Page } from "../../api/http.ts";
import type { Conflict } from "../../api/types.ts";
import { title } from "../../parts/format.ts";
import { Card } from "./Card.tsx";

const PAGE = 10;

export function Conflicts() {
  const conflicts = useInfiniteQuery({
    queryKey: ["conflicts"],
    queryFn: ({ pageParam, signal }) => get<Page<Conflict>>("/v1/memories/conflicts", { limit: PAGE, cursor: pageParam }, signal),
    initialPageParam: "",
    getNextPageParam: ({ next }) => next ?? undefined,
  });
  const items = conflicts.data?.pages.flatMap((page) => page.items) ?? [];
  if (items.length === 0) return null;
  return (
    <section className="conflicts" aria-label="Contradictions">
      <h3>These contradict each other</h3>
      <p className="quiet-text">What was said later counts. Correct or forget the one that is wrong.</p>
      {items.map(({ about, current, other }) => (
        <div className="conflict" key={current.id + other.id}>
          {about && <b>{title(about)}</b>}
          <ul className="rows sides">
            <Side name="Counts now">
              <Card memory={current} isOwn />
            </Side>
            <Side name="Said before">
              <Card memory={other} isOwn />
            </Side>
          </ul>
        </div>
      ))}
      {conflicts.hasNextPage && (
        <button type="button" onClick={() => void conflicts.fetchNextPage()} disabled={conflicts.isFetchingNextPage}>
          Show more
        </button>
      )}
    </section>
  );
}

function Side({ name, children }: { name: string; children: ReactNode }) {
  return (
    <li className="side">
      <small>{name}</small>
      <ul className="rows">{children}</ul>
    </li>
  );
}
