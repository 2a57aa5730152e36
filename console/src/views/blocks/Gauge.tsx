/** How full a block is, with the marks at which it is warned about, archived and reduced at once. */

import type { BlockState } from "../../api/types.ts";

const MARKS = [70, 85, 95] as const;

export function Gauge({ block: { label, size, limit, utilization, level } }: { block: BlockState }) {
  return (
    <div className="gauge" data-level={level}>
      <div role="meter" aria-label={`How full ${label.replaceAll("_", " ")} is`} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.min(100, utilization)} aria-valuetext={`${utilization} %, ${level}`}>
        <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
          <rect className="gauge-fill" x="0" y="0" width={Math.min(100, utilization)} height="8" />
          {MARKS.map((mark) => (
            <line key={mark} x1={mark} x2={mark} y1="0" y2="8" />
          ))}
        </svg>
      </div>
      <small>
        {utilization} % · {size.toLocaleString("en-GB")} of {limit.toLocaleString("en-GB")} characters{level === "normal" ? "" : ` · ${level}`}
      </small>
    </div>
  );
}
