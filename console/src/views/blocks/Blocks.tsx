/** The four memory blocks of a conversation, as they are now or were after any turn. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { get, send } from "../../api/http.ts";
import { LABELS, type ConversationFacts, type Label, type Validation, type WholeBlock } from "../../api/types.ts";
import { Json } from "../../parts/Json.tsx";
import { Diff } from "../../parts/Diff.tsx";
import { Empty, Loaded } from "../../parts/States.tsx";
import { compare } from "../../parts/compare.ts";
import { actor, count, day, title, words } from "../../parts/format.ts";
import { useChat } from "../../page/useChat.ts";
import { ArchivedTurns } from "./ArchivedTurns.tsx";
import { Gauge } from "./Gauge.tsx";
import { Revisions } from "./Revisions.tsx";
import { Timeline } from "./Timeline.tsx";
import { readable } from "./readable.ts";

const FROM = "/chat/$conversationId/blocks";

export function Blocks() {
  const { conversationId } = useParams({ from: FROM });
  const conversation = useQuery({
    queryKey: ["conversation", conversationId],
    queryFn: ({ signal }) => get<ConversationFacts>(`/v1/conversations/${conversationId}`, {}, signal),
  });
  return (
    <main id="content" className="view wide" tabIndex={-1}>
      <h2>Memory blocks</h2>
      <Loaded query={conversation} what="the conversation">
        {(data) => <OfConversation conversation={data} />}
      </Loaded>
    </main>
  );
}

function OfConversation({ conversation }: { conversation: ConversationFacts }) {
  const { id, turns } = conversation;
  const navigate = useNavigate({ from: FROM });
  const search = useSearch({ from: FROM });
  const { person } = useChat().view;
  const turn = Math.min(search.turn ?? turns, turns);
  const choose = (next: number) => void navigate({ search: (earlier) => ({ ...earlier, turn: next === turns ? undefined : next }), replace: true });
  const compareRevisions = (label: Label | undefined, revision?: number) => void navigate({ search: (earlier) => ({ ...earlier, label, revision }) });
  if (turns === 0)
    return (
      <Empty>
        This conversation has no turns yet. <Link to="/chat/$conversationId" params={{ conversationId: id }}>Write a message</Link>, and its blocks appear here.
      </Empty>
    );
  return (
    <>
      <p className="lead">
        What the server keeps in mind in{" "}
        <Link to="/chat/$conversationId" params={{ conversationId: id }}>
          {conversation.title ?? `the conversation of ${day(conversation.createdAt)}`}
        </Link>
        . Lines that a turn added are marked.
      </p>
      <ValidationState conversationId={id} />
      <Timeline conversationId={id} isOwn={conversation.person === person} turns={turns} turn={turn} onChoose={choose} />
      <div className="blocks">
        {LABELS.map((label) => (
          <OneBlock key={label} conversationId={id} label={label} turn={turn} isLatest={turn === turns} onHistory={() => compareRevisions(search.label === label ? undefined : label)} historyShown={search.label === label} />
        ))}
      </div>
      {search.label && <Revisions conversationId={id} label={search.label} revision={search.revision} onChoose={(revision) => compareRevisions(search.label, revision)} />}
      <ArchivedTurns conversationId={id} />
    </>
  );
}

function ValidationState({ conversationId }: { conversationId: string }) {
  const validation = useQuery({
    queryKey: ["validation", conversationId],
    queryFn: () => send<Validation>("POST", `/v1/conversations/${conversationId}/blocks/validate`),
    staleTime: Infinity,
    retry: false,
  });
  if (validation.error) return <p className="quiet-text">Whether the blocks keep every rule could not be checked. {validation.error.message}</p>;
  if (!validation.data) return null;
  const { valid, departures } = validation.data;
  return valid ? (
    <p className="valid">All four blocks keep every rule.</p>
  ) : (
    <div className="state failed">
      <p>The blocks break {count(departures.length, "rule")}. The next turn repairs them and puts the broken text into quarantine.</p>
      <ul className="plain">
        {departures.map(({ label, path, rule }) => (
          <li key={label + path + rule}>
            {title(label)}, {path}: {rule}
          </li>
        ))}
      </ul>
    </div>
  );
}

interface OneBlockProps {
  conversationId: string;
  label: Label;
  turn: number;
  /** The latest turn shows the block as it is now, which somebody may have changed since. */
  isLatest: boolean;
  historyShown: boolean;
  onHistory: () => void;
}

function OneBlock({ conversationId, label, turn, isLatest, historyShown, onHistory }: OneBlockProps) {
  const now = useBlock(conversationId, label, turn, isLatest);
  const before = useBlock(conversationId, label, turn - 1);
  return (
    <section className="block" aria-label={title(label)}>
      <h3>{title(label)}</h3>
      <Loaded query={now} what="the block">
        {(block) => (
          <>
            <Gauge block={block} />
            <p className="quiet-text small">
              {block.written === null
                ? "Empty before the first turn"
                : `Revision ${block.revision}, by ${actor(words(block.written.actor))}${block.written.turn === null ? "" : ` in turn ${block.written.turn}`}`}
            </p>
            <Diff lines={compare(turn === 1 ? [] : before.data ? readable(before.data) : readable(block), readable(block))} />
            <div className="block-foot">
              <Json label="JSON" value={block.value ?? block.text} />
              <button type="button" className="quiet" aria-pressed={historyShown} onClick={onHistory}>
                Revisions
              </button>
            </div>
          </>
        )}
      </Loaded>
    </section>
  );
}

/** A block after a turn, or as it is now. There is none before the first turn. */
function useBlock(conversationId: string, label: Label, turn: number, isNow = false) {
  return useQuery({
    queryKey: ["block", conversationId, label, turn, isNow],
    queryFn: ({ signal }) => get<WholeBlock>(`/v1/conversations/${conversationId}/blocks/${label}`, isNow ? {} : { atTurn: turn }, signal),
    enabled: turn > 0,
    placeholderData: keepPreviousData,
    staleTime: isNow ? 0 : 60_000,
  });
}
