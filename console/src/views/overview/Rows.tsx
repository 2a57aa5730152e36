/** The rows behind the charts: turns and safety events, with links to why an answer was given, and rotations. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { get, type Page, type Query } from "../../api/http.ts";
import type { Rotation, SafetyEventFacts, TurnFacts } from "../../api/types.ts";
import { Empty, Failed, Loading } from "../../parts/States.tsx";
import { actor, milliseconds, moment, percent, title, words } from "../../parts/format.ts";

export function Turns() {
  const search = useSearch({ from: "/turns" });
  return (
    <List<TurnFacts> name="Turns" path="/v1/turns" query={{ ...search }} columns={["When", "Specialist", "Sure", "Time", "Error", ""]}>
      {(turn) => [
        moment(turn.createdAt),
        turn.specialist ? actor(turn.specialist) : "",
        turn.confidence === null ? "" : percent(turn.confidence),
        milliseconds(turn.milliseconds),
        turn.error ? words(turn.error) : "",
        <Why key="why" messageId={turn.messageId} />,
      ]}
    </List>
  );
}

export function Alarms() {
  const search = useSearch({ from: "/alarms" });
  return (
    <List<SafetyEventFacts> name="Alarms" path="/v1/safety-events" query={{ ...search }} columns={["When", "Danger", "Certainty", "Tier", "Rules", ""]}>
      {(event) => [
        moment(event.createdAt),
        title(event.kind),
        event.certainty ?? "certain",
        event.tier,
        event.rules.map(words).join(", "),
        <Why key="why" messageId={event.messageId} />,
      ]}
    </List>
  );
}

export function Rotations() {
  const search = useSearch({ from: "/rotations" });
  return (
    <List<Rotation> name="Rotations" path="/v1/rotations" query={{ ...search }} columns={["When", "In turn", "Archived turns", ""]}>
      {({ createdAt, turn, first, last, conversationId }) => [
        moment(createdAt),
        turn ?? "by hand",
        `${first} to ${last}`,
        <Link key="blocks" to="/chat/$conversationId/blocks" params={{ conversationId }} search={{ turn: turn ?? undefined }}>
          blocks
        </Link>,
      ]}
    </List>
  );
}

function Why({ messageId }: { messageId: string }) {
  return (
    <Link to="/why/$messageId" params={{ messageId }}>
      why
    </Link>
  );
}

/** What tells a row from the others: its id, or where and when it was. */
interface Row {
  readonly id?: string;
  readonly conversationId: string;
  readonly createdAt: string;
}

interface ListProps<T> {
  name: string;
  path: string;
  query: Query;
  columns: readonly string[];
  children: (row: T) => readonly ReactNode[];
}

function List<T extends Row>({ name, path, query, columns, children }: ListProps<T>) {
  const found = useInfiniteQuery({
    queryKey: [path, query],
    queryFn: ({ pageParam, signal }) => get<Page<T>>(path, { ...query, limit: 100, cursor: pageParam }, signal),
    initialPageParam: "",
    getNextPageParam: ({ next }) => next ?? undefined,
  });
  const rows = found.data?.pages.flatMap(({ items }) => items) ?? [];
  return (
    <main id="content" className="view" tabIndex={-1}>
      <h2>{name}</h2>
      <p className="lead">
        <Link to="/overview">← Overview</Link>
      </p>
      {found.error && !found.data ? (
        <Failed what={`the ${name.toLowerCase()}`} error={found.error} onRetry={() => void found.refetch()} />
      ) : !found.data ? (
        <Loading what={`the ${name.toLowerCase()}`} />
      ) : rows.length === 0 ? (
        <Empty>There are none in this period. Choose a longer one in the overview.</Empty>
      ) : (
        <div className="scroll" tabIndex={0} role="group" aria-label={name}>
          <table className="rows-table">
            <thead>
              <tr>
                {columns.map((column) => (
                  <th key={column} scope="col">
                    {column || <span className="unseen">Explanation</span>}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.id ?? row.conversationId + row.createdAt}>
                  {children(row).map((cell, index) => (
                    <td key={index}>{cell}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {found.hasNextPage && (
        <button type="button" onClick={() => void found.fetchNextPage()} disabled={found.isFetchingNextPage}>
          Show more
        </button>
      )}
    </main>
  );
}
