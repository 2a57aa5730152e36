/** Lines of which some were added or removed. */

import type { DiffLine } from "./compare.ts";

const SIGNS = { added: "+", removed: "−" } as const;
const SPOKEN = { added: "Added: ", removed: "Removed: " } as const;

export function Diff({ lines }: { lines: readonly DiffLine[] }) {
  return (
    <div className="diff" tabIndex={0} role="group" aria-label="Text">
      {lines.map(({ text, change }, index) => (
        <p key={index} data-change={change ?? "none"}>
          {change && (
            <>
              <span aria-hidden="true">{SIGNS[change]} </span>
              <span className="unseen">{SPOKEN[change]}</span>
            </>
          )}
          {text || " "}
        </p>
      ))}
    </div>
  );
}
