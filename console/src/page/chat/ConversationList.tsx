/** The person's conversations: find, open, rename and archive them, or start another. */

import { keepPreviousData, useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import * as Menu from "@radix-ui/react-dropdown-menu";
import { useDeferredValue, useEffect, useState, type FormEvent, type KeyboardEvent } from "react";
import { get, send, type Page } from "../../api/http.ts";
import type { ConversationFacts } from "../../api/types.ts";
import { Empty, Failed, Loading } from "../../parts/States.tsx";
import { dayOrTime } from "../../parts/format.ts";

const PAGE = 30;
const LIST = "conversations";

interface ConversationListProps {
  /** Who is signed in; null for nobody. */
  person: string | null;
  /** The id of the open conversation; empty if there is none. */
  current: string;
  /** Grows with each message and each complete answer of the open conversation; then the list is read again. */
  steps: number;
  /** On a narrow screen the list covers the chat, if it is shown at all. */
  shown: boolean;
  onClose: () => void;
  /** Null while the open conversation is empty. */
  onStartOver: (() => void) | null;
}

export function ConversationList({ person, current, steps, shown, onClose, onStartOver }: ConversationListProps) {
  const [search, setSearch] = useState("");
  const wanted = useDeferredValue(search.trim());
  const [archived, setArchived] = useState(false);
  const startOver = () => {
    onStartOver?.();
    onClose();
  };
  return (
    <aside className="conversations" aria-label="Conversations" data-shown={shown} onKeyDown={(event: KeyboardEvent) => event.key === "Escape" && onClose()}>
      <button type="button" className="primary" disabled={!onStartOver} onClick={startOver}>
        New conversation
      </button>
      <input type="search" aria-label="Search conversations" placeholder="Search …" value={search} onChange={({ target }) => setSearch(target.value)} maxLength={200} />
      <label className="check">
        <input type="checkbox" checked={archived} onChange={({ target }) => setArchived(target.checked)} /> Archived
      </label>
      {person !== null && <Found person={person} current={current} steps={steps} search={wanted} archived={archived} onOpen={onClose} />}
    </aside>
  );
}

interface FoundProps {
  person: string;
  current: string;
  steps: number;
  search: string;
  archived: boolean;
  onOpen: () => void;
}

function Found({ person, current, steps, search, archived, onOpen }: FoundProps) {
  const queries = useQueryClient();
  useEffect(() => void queries.invalidateQueries({ queryKey: [LIST] }), [queries, steps, current]);
  const found = useInfiniteQuery({
    queryKey: [LIST, person, archived, search],
    // A conversation without a turn has nothing to show; the page starts one when it opens.
    queryFn: ({ pageParam, signal }) =>
      get<Page<ConversationFacts>>("/v1/conversations", { status: archived ? "archived" : "active", begun: true, search, limit: PAGE, cursor: pageParam }, signal),
    initialPageParam: "",
    getNextPageParam: ({ next }) => next ?? undefined,
    placeholderData: keepPreviousData,
  });
  if (found.error && !found.data) return <Failed what="the conversations" error={found.error} onRetry={() => void found.refetch()} />;
  if (!found.data) return <Loading what="the conversations" />;
  const items = found.data.pages.flatMap((page) => page.items);
  if (items.length === 0 && !found.hasNextPage) return <Empty>{emptyText(search, archived)}</Empty>;
  return (
    <>
      <ul>
        {items.map((item) => (
          <Entry key={item.id} item={item} isCurrent={item.id === current} onOpen={onOpen} />
        ))}
      </ul>
      {found.hasNextPage && (
        <button type="button" onClick={() => void found.fetchNextPage()} disabled={found.isFetchingNextPage}>
          Show more
        </button>
      )}
    </>
  );
}

function emptyText(search: string, archived: boolean): string {
  if (search) return "No conversation has these words. Try fewer or other words.";
  return archived ? "You have not archived a conversation." : "Your conversations appear here once you have written a message.";
}

function Entry({ item, isCurrent, onOpen }: { item: ConversationFacts; isCurrent: boolean; onOpen: () => void }) {
  const queries = useQueryClient();
  const [renaming, setRenaming] = useState(false);
  const change = useMutation({
    mutationFn: (changes: { title?: string; status?: string }) => send<ConversationFacts>("PATCH", `/v1/conversations/${item.id}`, changes),
    onSettled: () => queries.invalidateQueries({ queryKey: [LIST] }),
  });
  const name = item.title ?? `Conversation of ${dayOrTime(item.createdAt)}`;
  const rename = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const title = String(new FormData(event.currentTarget).get("title")).trim();
    setRenaming(false);
    if (title && title !== item.title) change.mutate({ title });
  };
  if (renaming)
    return (
      <li>
        <form className="rename" onSubmit={rename}>
          <input name="title" aria-label="Title" defaultValue={item.title ?? ""} maxLength={200} autoFocus onKeyDown={({ key }) => key === "Escape" && setRenaming(false)} />
          <button type="submit">Save</button>
        </form>
      </li>
    );
  return (
    <li className="conversation-entry" data-current={isCurrent}>
      <Link to="/chat/$conversationId" params={{ conversationId: item.id }} aria-current={isCurrent ? "page" : undefined} onClick={onOpen}>
        <span className="conversation-title">{name}</span>
        <small>
          {dayOrTime(item.updatedAt)} · {item.turns} {item.turns === 1 ? "message" : "messages"}
        </small>
      </Link>
      <Menu.Root modal={false}>
        <Menu.Trigger asChild>
          <button type="button" className="quiet" aria-label={`Change ${name}`}>
            ⋯
          </button>
        </Menu.Trigger>
        <Menu.Portal>
          <Menu.Content className="menu" align="end">
            <Menu.Item className="menu-item" onSelect={() => setTimeout(() => setRenaming(true))}>
              Rename
            </Menu.Item>
            <Menu.Item className="menu-item" onSelect={() => change.mutate({ status: item.status === "archived" ? "active" : "archived" })}>
              {item.status === "archived" ? "Make active again" : "Archive"}
            </Menu.Item>
          </Menu.Content>
        </Menu.Portal>
      </Menu.Root>
      {change.error && <small className="failure">{change.error.message}</small>}
    </li>
  );
}
