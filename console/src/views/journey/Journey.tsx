/** The journey of one search: what was found, what was included, and what the answer was given. */

import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { get } from "../../api/http.ts";
import type { Candidate, Retrieval } from "../../api/types.ts";
import { Empty, Loaded } from "../../parts/States.tsx";
import { count, milliseconds, moment, score, words } from "../../parts/format.ts";
import { columns, dropText, signals } from "./stages.ts";

const HEADS = {
  candidate: { name: "Candidates only", hint: "Found, but left out" },
  included: { name: "Included", hint: "Fitted, but not used in the answer" },
  final: { name: "Final", hint: "Given to the answer" },
} as const;

export function Journey() {
  const { retrievalId } = useParams({ from: "/retrievals/$retrievalId" });
  const retrieval = useQuery({
    queryKey: ["retrieval", retrievalId],
    queryFn: ({ signal }) => get<Retrieval>(`/v1/retrievals/${retrievalId}`, {}, signal),
    staleTime: Infinity,
  });
  return (
    <main id="content" className="view wide" tabIndex={-1}>
      <h2>What was looked up</h2>
      <Loaded query={retrieval} what="the search">
        {(data) => <Found retrieval={data} />}
      </Loaded>
    </main>
  );
}

function Found({ retrieval }: { retrieval: Retrieval }) {
  const { query, messageId, counts, candidates, createdAt, recipe, threshold, period } = retrieval;
  return (
    <>
      <p className="lead">
        {moment(createdAt)}, in {milliseconds(retrieval.milliseconds)}, by the recipe “{words(recipe)}”.{" "}
        {messageId && (
          <Link to="/why/$messageId" params={{ messageId }}>
            Why the answer was given
          </Link>
        )}
      </p>
      <blockquote>{query}</blockquote>
      <ol className="funnel" aria-label="How many memories were left at each stage">
        <Stage name="searched" value={counts.searched} note={period ? `of ${period}` : ""} />
        <Stage name="candidates" value={counts.candidates} note={belowText(retrieval)} />
        <Stage name="included" value={counts.included} note="" />
        <Stage name="final" value={counts.final} note="" />
      </ol>
      <BudgetBar retrieval={retrieval} />
      {candidates.length === 0 ? (
        <Empty>
          {counts.searched === 0
            ? "There was nothing to search: the person had no long-term memory yet."
            : `No memory was good enough${threshold === null ? "" : ` (at least ${score(threshold)} is needed)`}, so none was used.`}
        </Empty>
      ) : (
        <div className="journey">
          {columns(candidates).map(({ stage, items }) => (
            <section key={stage} aria-label={HEADS[stage].name}>
              <h3>
                {HEADS[stage].name} <small>{items.length}</small>
              </h3>
              <p className="quiet-text small">{HEADS[stage].hint}</p>
              {items.map((candidate) => (
                <OneCandidate key={candidate.memoryId} candidate={candidate} />
              ))}
              {items.length === 0 && <p className="quiet-text small">None.</p>}
            </section>
          ))}
        </div>
      )}
    </>
  );
}

function belowText({ counts: { belowThreshold, beyondLimit }, threshold }: Retrieval): string {
  const below = belowThreshold > 0 ? `${belowThreshold} scored below ${threshold === null ? "the minimum" : score(threshold)}` : "";
  const beyond = beyondLimit > 0 ? `${beyondLimit} beyond the limit` : "";
  return [below, beyond].filter(Boolean).join(", ");
}

function Stage({ name, value, note }: { name: string; value: number; note: string }) {
  return (
    <li>
      <b>{value.toLocaleString("en-GB")}</b> {name}
      {note && <small>{note}</small>}
    </li>
  );
}

function BudgetBar({ retrieval: { budget } }: { retrieval: Retrieval }) {
  if (budget === null) return null;
  const { limit, used } = budget;
  if (limit === null) return <p className="quiet-text">The context has about {count(used, "token")}; there was no limit.</p>;
  return (
    <div className="gauge">
      <div role="meter" aria-label="Budget of the context" aria-valuemin={0} aria-valuemax={limit} aria-valuenow={Math.min(used, limit)} aria-valuetext={`${used} of ${limit} tokens`}>
        <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
          <rect className="gauge-fill" x="0" y="0" width={Math.min(100, (100 * used) / Math.max(1, limit))} height="8" />
        </svg>
      </div>
      <small>
        Budget: about {used.toLocaleString("en-GB")} of {count(limit, "token")}
      </small>
    </div>
  );
}

function OneCandidate({ candidate }: { candidate: Candidate }) {
  const { content, kind, role, tokens, dropped } = candidate;
  return (
    <article className="candidate">
      <p>{content ?? <i>This memory was deleted.</i>}</p>
      <small>
        {[kind && words(kind), role && words(role), candidate.score !== null && `score ${score(candidate.score)}`, tokens !== null && count(tokens, "token")].filter(Boolean).join(" · ")}
      </small>
      {dropped && <small className="dropped">Left out: {dropText(dropped)}</small>}
      <table className="signals">
        <caption className="unseen">Scores by signal</caption>
        <tbody>
          {signals(candidate).map(({ name, value, share }) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>
                <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
                  <rect x="0" y="0" width={100 * share} height="6" />
                </svg>
              </td>
              <td className="number">{score(value)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </article>
  );
}
