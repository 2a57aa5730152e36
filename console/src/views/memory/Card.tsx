/** One memory: its text, when and in whose words it was told, and what can be done about it. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState, type FormEvent } from "react";
import { LARGEST_PAGE, get } from "../../api/http.ts";
import type { Lineage, MemoryFacts, WholeMemory } from "../../api/types.ts";
import { Loaded } from "../../parts/States.tsx";
import { actor, count, day, moment, words } from "../../parts/format.ts";
import { Forget } from "./Forget.tsx";
import { useChange } from "./undo.tsx";

interface CardProps {
  memory: MemoryFacts;
  /** Only one's own memories can be changed. */
  isOwn: boolean;
  opened?: boolean;
}

export function Card({ memory, isOwn, opened = false }: CardProps) {
  const [correcting, setCorrecting] = useState(false);
  const change = useChange(memory.id);
  return (
    <li className="memory" data-pinned={memory.pinned}>
      {correcting ? <Correct memory={memory} onDone={() => setCorrecting(false)} /> : <p className="memory-text">{memory.content ?? <i>The text is not shown in a list.</i>}</p>}
      <Told isOwn={isOwn} memory={memory} />
      {isOwn && !correcting && (
        <div className="actions">
          <button type="button" className="quiet" onClick={() => setCorrecting(true)}>
            Correct
          </button>
          <button type="button" className="quiet" aria-pressed={memory.pinned} onClick={() => change.mutate({ what: memory.pinned ? "Unpinned." : "Pinned: it is preferred in answers.", changes: { pinned: !memory.pinned } })}>
            {memory.pinned ? "Unpin" : "Pin"}
          </button>
          <button type="button" className="quiet" onClick={() => change.mutate({ what: memory.archived ? "It is used again." : "Set aside: answers do not use it.", changes: { archived: !memory.archived } })}>
            {memory.archived ? "Use again" : "Set aside"}
          </button>
          <Forget memory={memory} />
        </div>
      )}
      {change.error && <p className="failure">{change.error.message}</p>}
      <Origins id={memory.id} opened={opened} />
    </li>
  );
}

function Told({ isOwn, memory: { kind, saidAt, speaker, source, confidence, createdAt } }: { isOwn: boolean; memory: MemoryFacts }) {
  return (
    <small>
      {kind === "utterance" ? (speaker ? `${speaker}, ` : isOwn ? "You, " : "") : kind === "summary" ? "Summed up " : "Told "}
      {day(saidAt ?? createdAt)}
      {source?.words && kind !== "utterance" && <>: “{source.words}”</>}
      {kind === "fact" && confidence < 0.995 && `, ${Math.round(confidence * 100)} % sure`}
      {source?.messageId && (
        <>
          {" · "}
          <Link to="/why/$messageId" params={{ messageId: source.messageId }}>
            the message
          </Link>
        </>
      )}
    </small>
  );
}

/** A fact is corrected by its value, which its conversation then uses, too; other memories by their text. */
function Correct({ memory, onDone }: { memory: MemoryFacts; onDone: () => void }) {
  const whole = useQuery({ queryKey: ["memory", memory.id], queryFn: ({ signal }) => get<WholeMemory>(`/v1/memories/${memory.id}`, {}, signal) });
  const change = useChange(memory.id, onDone);
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget).get("text")).trim();
    const isFact = typeof whole.data?.value === "string";
    if (text) change.mutate({ what: "Corrected.", changes: isFact ? { value: text } : { content: text } });
  };
  return (
    <Loaded query={whole} what="the memory">
      {({ value, content, about }) => (
        <form className="correct" onSubmit={save}>
          <label>
            <span className="quiet-text">{value === null ? "What should be remembered?" : `What is right (${words(about ?? "fact")})?`}</span>
            <textarea name="text" defaultValue={value ?? content ?? ""} rows={value === null ? 3 : 1} autoFocus maxLength={value === null ? 8000 : 240} />
          </label>
          {change.error && <p className="failure">{change.error.message}</p>}
          <div className="choices">
            <button type="button" onClick={onDone}>
              Cancel
            </button>
            <button type="submit" className="primary" disabled={change.isPending}>
              Save
            </button>
          </div>
        </form>
      )}
    </Loaded>
  );
}

/** Where the memory comes from, how it changed, and where it was used; read when it is opened. */
function Origins({ id, opened }: { id: string; opened: boolean }) {
  const [open, setOpen] = useState(opened);
  const lineage = useQuery({ queryKey: ["lineage", id], queryFn: ({ signal }) => readLineage(id, signal), enabled: open });
  return (
    <details className="origins" open={open} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Where it comes from, and where it was used</summary>
      {open && (
        <Loaded query={lineage} what="its origins">
          {({ memory, restsOn, derived, changes, uses }) => (
            <dl className="pairs">
              {memory.content && <Pair name="Text" value={memory.content} />}
              {memory.timesSaid !== null && memory.timesSaid > 1 && <Pair name="Said" value={count(memory.timesSaid, "time")} />}
              {memory.history.length > 0 && <Pair name="Before" value={memory.history.map(({ value, saidAt }) => `${value} (${day(saidAt)})`).join(", ")} />}
              {restsOn.length > 0 && <Pair name="Rests on" value={restsOn.map(({ content }) => `“${content}”`).join(", ")} />}
              {derived.length > 0 && <Pair name="Led to" value={derived.map(({ content }) => `“${content}”`).join(", ")} />}
              <dt>Changes</dt>
              <dd>
                <ul className="bare">
                  {changes.map((each) => (
                    <li key={each.number}>
                      {moment(each.createdAt)}: {words(each.action)} by {actor(each.actor)}
                    </li>
                  ))}
                </ul>
              </dd>
              <dt>Uses</dt>
              <dd>
                {uses.length === 0 ? (
                  "No answer has used it yet."
                ) : (
                  <ul className="bare">
                    {uses.map(({ traceId, messageId, action, createdAt }) => (
                      <li key={traceId}>
                        {moment(createdAt)}: {words(action)}
                        {messageId && (
                          <>
                            {" · "}
                            <Link to="/why/$messageId" params={{ messageId }}>
                              why
                            </Link>
                          </>
                        )}
                      </li>
                    ))}
                  </ul>
                )}
              </dd>
            </dl>
          )}
        </Loaded>
      )}
    </details>
  );
}

/** The lineage with all changes and everything that was made from the memory. */
async function readLineage(id: string, signal: AbortSignal): Promise<Lineage> {
  const read = (cursors: { changesCursor?: string | undefined; derivedCursor?: string | undefined }) => get<Lineage>(`/v1/memories/${id}/lineage`, { limit: LARGEST_PAGE, ...cursors }, signal);
  const first = await read({});
  const [changes, derived] = [[...first.changes], [...first.derived]];
  for (let next = first.nextChanges; next !== null; ) {
    const page = await read({ changesCursor: next });
    changes.push(...page.changes);
    next = page.nextChanges;
  }
  for (let next = first.nextDerived; next !== null; ) {
    const page = await read({ derivedCursor: next });
    derived.push(...page.derived);
    next = page.nextDerived;
  }
  return { ...first, changes, derived };
}

function Pair({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}
