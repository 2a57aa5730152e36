/** What is remembered of a person for good: by kind, with when and in whose words. It can be corrected and forgotten. */

import * as Tabs from "@radix-ui/react-tabs";
import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useDeferredValue, useEffect, useState } from "react";
import { get, type Page } from "../../api/http.ts";
import { MEMORY_KINDS, type MemoryFacts, type MemoryKind, type WholeMemory } from "../../api/types.ts";
import { Empty, Failed, Loaded, Loading } from "../../parts/States.tsx";
import { title } from "../../parts/format.ts";
import { useChat } from "../../page/useChat.ts";
import { Card } from "./Card.tsx";
import { Conflicts } from "./Conflicts.tsx";
import { UndoBar, UndoProvider } from "./undo.tsx";

const PAGE = 50;
const TABS: Record<MemoryKind, { name: string; empty: string }> = {
  fact: { name: "Facts", empty: "Nothing lasting is known yet. Facts such as allergies, medicines and conditions appear here when they are told in the chat." },
  utterance: { name: "In your words", empty: "Nothing was said yet. What you write in the chat appears here, word for word." },
  summary: { name: "Summaries", empty: "Nothing was summed up yet. After some messages, and when a conversation pauses, what you talked about is summed up here." },
  user: { name: "Added by hand", empty: "Nothing was added by hand." },
  imported: { name: "Imported", empty: "Nothing was imported. The command `anamnesis memory import` reads memories from files." },
};

export function Memory() {
  const search = useSearch({ from: "/memory" });
  if (search.id) return <One id={search.id} />;
  return (
    <main id="content" className="view" tabIndex={-1}>
      <h2>{search.person ? `Memory of ${search.person}` : "Your memory"}</h2>
      <p className="lead">
        {search.person
          ? "You see facts without texts. To read one, open it and give a reason; the person can see that you did."
          : "What is remembered of you beyond one conversation. Correct what is wrong: the next answer uses it. Forget what should go."}
      </p>
      <UndoProvider>
        <UndoBar />
        <All person={search.person} kind={search.kind ?? "fact"} words={search.q ?? ""} archived={search.archived === true} />
      </UndoProvider>
    </main>
  );
}

function One({ id }: { id: string }) {
  const memory = useQuery({ queryKey: ["memory", id], queryFn: ({ signal }) => get<WholeMemory>(`/v1/memories/${id}`, {}, signal) });
  const own = useChat().view.person;
  const person = memory.data && memory.data.person !== own ? memory.data.person : undefined;
  return (
    <main id="content" className="view" tabIndex={-1}>
      <h2>{person ? `A memory of ${person}` : memory.data ? "Your memory" : "A memory"}</h2>
      <p className="lead">
        <Link to="/memory" search={{ person }}>
          ← All memories
        </Link>
      </p>
      <UndoProvider>
        <UndoBar />
        <Loaded query={memory} what="the memory">
          {(data) => (
            <ul className="rows">
              <Card memory={data} isOwn={!person} opened />
            </ul>
          )}
        </Loaded>
      </UndoProvider>
    </main>
  );
}

interface AllProps {
  person: string | undefined;
  kind: MemoryKind;
  words: string;
  archived: boolean;
}

function All({ person, kind, words, archived }: AllProps) {
  const navigate = useNavigate({ from: "/memory" });
  const [typed, setTyped] = useState(words);
  const wanted = useDeferredValue(typed.trim());
  useEffect(() => {
    void navigate({ search: (earlier) => ({ ...earlier, q: wanted || undefined }), replace: true });
  }, [navigate, wanted]);
  const isOwn = person === undefined;
  return (
    <>
      {isOwn && <Conflicts />}
      <div className="filters">
        {isOwn && <input type="search" aria-label="Search memories" placeholder="Search …" value={typed} maxLength={200} onChange={({ target }) => setTyped(target.value)} />}
        <label className="check">
          <input
            type="checkbox"
            checked={archived}
            onChange={({ target }) => void navigate({ search: (earlier) => ({ ...earlier, archived: target.checked || undefined }), replace: true })}
          />{" "}
          Set aside
        </label>
      </div>
      <Tabs.Root value={kind} onValueChange={(next) => void navigate({ search: (earlier) => ({ ...earlier, kind: next as MemoryKind }) })}>
        <Tabs.List className="tabs" aria-label="Kinds of memories">
          {MEMORY_KINDS.map((each) => (
            <Tabs.Trigger key={each} value={each}>
              {TABS[each].name}
            </Tabs.Trigger>
          ))}
        </Tabs.List>
        {MEMORY_KINDS.map((each) => (
          <Tabs.Content key={each} value={each}>
            {each === kind && <List person={person} kind={kind} words={isOwn ? wanted : ""} archived={archived} />}
          </Tabs.Content>
        ))}
      </Tabs.Root>
    </>
  );
}

function List({ person, kind, words, archived }: AllProps) {
  const isOwn = person === undefined;
  const found = useInfiniteQuery({
    queryKey: ["memories", person, kind, words, archived],
    queryFn: ({ pageParam, signal }) =>
      get<Page<MemoryFacts>>("/v1/memories", { person, kind, search: words, status: archived ? "archived" : "active", texts: isOwn || undefined, limit: PAGE, cursor: pageParam }, signal),
    initialPageParam: "",
    getNextPageParam: ({ next }) => next ?? undefined,
    placeholderData: keepPreviousData,
  });
  if (found.error && !found.data) return <Failed what="the memories" error={found.error} onRetry={() => void found.refetch()} />;
  if (!found.data) return <Loading what="the memories" />;
  const memories = found.data.pages.flatMap(({ items }) => items);
  if (memories.length === 0) return <Empty>{words ? "No memory of this kind has these words. Try fewer or other words." : archived ? "Nothing of this kind was set aside." : TABS[kind].empty}</Empty>;
  return (
    <>
      {groups(memories).map(({ about, items }) => (
        <section key={about ?? ""} aria-label={about ? title(about) : TABS[kind].name}>
          {about && <h3 className="group">{title(about)}</h3>}
          <ul className="rows">
            {items.map((memory) => (
              <Card key={memory.id} memory={memory} isOwn={isOwn} />
            ))}
          </ul>
        </section>
      ))}
      {found.hasNextPage && (
        <button type="button" onClick={() => void found.fetchNextPage()} disabled={found.isFetchingNextPage}>
          Show more
        </button>
      )}
    </>
  );
}

/** Memories about the same thing together, pinned ones first. */
function groups(memories: readonly MemoryFacts[]): { about: string | null; items: MemoryFacts[] }[] {
  const kinds = [...new Set(memories.map(({ about }) => about))];
  return kinds.map((about) => ({ about, items: memories.filter((one) => one.about === about).sort((one, other) => Number(other.pinned) - Number(one.pinned)) }));
}
