/** Shows which memories an answer read and wrote, next to the answer. */

import { memo } from "react";
import type { Trace } from "../../chat/transcript.ts";

export const Traces = memo(function Traces({ traces }: { traces: readonly Trace[] }) {
  return (
    <aside className="traces" tabIndex={0} aria-label="Memory traces of this answer" aria-live="off">
      {traces.length > 0 && (
        <ol>
          {traces.map((trace) => (
            <OneTrace key={trace.id} trace={trace} />
          ))}
        </ol>
      )}
    </aside>
  );
});

function OneTrace({ trace: { action, memoryType, memoryId, content, confidence, metadata = {} } }: { trace: Trace }) {
  const { label, agent, source, revision, level, utilization, role, truncated, forgotten, background } = metadata;
  const facts: [string, unknown][] = [
    ["by", agent],
    ["source", source],
    ["role", role],
    ["revision", revision],
    ["confidence", confidence === undefined ? null : percent(confidence * 100)],
    ["full", typeof utilization === "number" ? percent(utilization) : null],
    ["level", level],
    ["when", background === true ? "in the background" : null],
  ];
  return (
    <li className="trace" data-action={action}>
      <p className="trace-title">
        <span className="action">{action}</span> <span className="label">{words(label ?? memoryType ?? memoryId)}</span>
      </p>
      <p className="content">
        {forgotten === true ? <i>No longer kept in this browser.</i> : content || <i>Empty.</i>}
        {truncated !== undefined && truncated !== false && <i> (cut)</i>}
      </p>
      <ul className="facts">
        {facts
          .filter(([, value]) => typeof value === "string" || typeof value === "number")
          .map(([name, value]) => (
            <li key={name} data-fact={name} data-value={String(value)}>
              {name} <b>{words(value)}</b>
            </li>
          ))}
      </ul>
    </li>
  );
}

const percent = (value: number) => `${Math.round(value * 10) / 10} %`;

const words = (value: unknown) => String(value).replaceAll("_", " ");
