/** A conversation of somebody else, which staff can read but not continue. The server asks for a reason. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { get, type Page } from "../../api/http.ts";
import type { TranscriptMessage } from "../../api/types.ts";
import { Empty, Failed, Loading } from "../../parts/States.tsx";

export function OthersConversation({ id }: { id: string }) {
  const found = useInfiniteQuery({
    queryKey: ["conversation of somebody else", id],
    queryFn: ({ pageParam, signal }) => get<Page<TranscriptMessage>>(`/v1/conversations/${id}/transcript`, { cursor: pageParam }, signal),
    initialPageParam: "",
    getNextPageParam: ({ next }) => next ?? undefined,
    staleTime: Infinity,
  });
  const messages = found.data?.pages.flatMap(({ items }) => items) ?? [];
  return (
    <main id="content" tabIndex={-1}>
      <div className="conversation others">
        <h2>A conversation of somebody else</h2>
        {found.error && !found.data ? (
          <Failed what="the conversation" error={found.error} onRetry={() => void found.refetch()} />
        ) : !found.data ? (
          <Loading what="the conversation" />
        ) : messages.length === 0 ? (
          <Empty>Nothing was written in it yet.</Empty>
        ) : (
          <>
            <p className="quiet-text">You can read it, but not write in it. The person can see that you did, and why.</p>
            {messages.map((message) => (
              <OneMessage key={message.id} message={message} />
            ))}
          </>
        )}
        {found.hasNextPage && (
          <button type="button" onClick={() => void found.fetchNextPage()} disabled={found.isFetchingNextPage}>
            Show more
          </button>
        )}
      </div>
    </main>
  );
}

function OneMessage({ message: { role, content, superseded } }: { message: TranscriptMessage }) {
  const isQuestion = role === "user";
  return (
    <article className={isQuestion ? "question" : "answer"}>
      <h3 className="unseen">{isQuestion ? "The person" : "Anamnesis"}</h3>
      <p>{content}</p>
      {superseded && <small>It was replaced later.</small>}
    </article>
  );
}
