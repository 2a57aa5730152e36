/** The revisions of a block: who wrote each, and what differs from the one before. */

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { get, type Page } from "../../api/http.ts";
import type { Label, RevisionFacts, WholeBlock } from "../../api/types.ts";
import { Diff } from "../../parts/Diff.tsx";
import { Failed, Loaded, Loading } from "../../parts/States.tsx";
import { compare, type DiffLine } from "../../parts/compare.ts";
import { actor, moment, title, words } from "../../parts/format.ts";
import { readable } from "./readable.ts";

const PAGE = 20;

interface RevisionsProps {
  conversationId: string;
  label: Label;
  revision: number | undefined;
  onChoose: (revision: number) => void;
}

export function Revisions({ conversationId, label, revision, onChoose }: RevisionsProps) {
  const path = `/v1/conversations/${conversationId}/blocks/${label}/revisions`;
  const found = useInfiniteQuery({
    queryKey: ["revisions", conversationId, label],
    queryFn: ({ pageParam, signal }) => get<Page<RevisionFacts>>(path, { limit: PAGE, cursor: pageParam }, signal),
    initialPageParam: "",
    getNextPageParam: ({ next }) => next ?? undefined,
  });
  if (found.error && !found.data) return <Failed what="the revisions" error={found.error} onRetry={() => void found.refetch()} />;
  if (!found.data) return <Loading what="the revisions" />;
  const revisions = found.data.pages.flatMap(({ items }) => items);
  const chosen = revision ?? revisions[0]?.revision;
  return (
    <section className="revisions" aria-label={`Revisions of ${words(label)}`}>
      <h3>Revisions: {words(label)}</h3>
      <div className="revision-columns">
        <div>
          <ol>
            {revisions.map((each) => (
              <li key={each.revision}>
                <button type="button" aria-pressed={each.revision === chosen} onClick={() => onChoose(each.revision)}>
                  {each.revision} · {actor(words(each.actor))}
                  {each.turn !== null && ` · turn ${each.turn}`}
                  <small>{moment(each.createdAt)}</small>
                </button>
              </li>
            ))}
          </ol>
          {found.hasNextPage && (
            <button type="button" onClick={() => void found.fetchNextPage()}>
              Show earlier ones
            </button>
          )}
        </div>
        {chosen !== undefined && <RevisionDiff path={path} label={label} revision={chosen} />}
      </div>
    </section>
  );
}

function RevisionDiff({ path, label, revision }: { path: string; label: Label; revision: number }) {
  const diff = useQuery({
    queryKey: ["revision diff", path, revision],
    queryFn: async ({ signal }): Promise<DiffLine[]> => {
      const read = async (number: number) => (number < 1 ? [] : readable(await get<WholeBlock>(`${path}/${number}`, {}, signal)));
      const [before, after] = await Promise.all([read(revision - 1), read(revision)]);
      return compare(before, after).filter(({ change }) => change !== null);
    },
    staleTime: Infinity,
  });
  return (
    <div>
      <p className="quiet-text">{revision === 1 ? "The first revision" : `What differs from revision ${revision - 1}`}</p>
      <Loaded query={diff} what="the difference">
        {(lines) => (lines.length === 0 ? <p>Nothing that people read has changed in {title(label).toLowerCase()}.</p> : <Diff lines={lines} />)}
      </Loaded>
    </div>
  );
}
