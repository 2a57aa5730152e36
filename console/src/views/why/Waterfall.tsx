/** Times of a turn as bars on one axis, with a table's structure for screen readers. */

import { milliseconds } from "../../parts/format.ts";
import type { Span } from "./spans.ts";

export function Waterfall({ spans }: { spans: readonly Span[] }) {
  if (spans.length === 0) return <p>No times are kept for this turn.</p>;
  const total = Math.max(1, ...spans.map(({ end }) => end));
  return (
    <table className="waterfall">
      <caption>{milliseconds(total)} from the message to the end of the turn</caption>
      <tbody>
        {spans.map(({ name, start, end }) => (
          <tr key={name + start}>
            <th scope="row">{name}</th>
            <td className="bars">
              <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
                <rect x={(100 * start) / total} y="0" width={Math.max(0.4, (100 * (end - start)) / total)} height="10" />
              </svg>
            </td>
            <td className="number">{milliseconds(end - start)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
