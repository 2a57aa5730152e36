/** The table of traces. Only the rows in sight are in the page, so that it stays quick however many there are. */

import { createColumnHelper, tableFeatures, useTable } from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef } from "react";
import type { TraceFacts } from "../../api/types.ts";
import { actor, moment, percent, words } from "../../parts/format.ts";

const ROW_HEIGHT = 36;
const NEAR_THE_END = 20;

const features = tableFeatures({});
const helper = createColumnHelper<typeof features, TraceFacts>();
const columns = helper.columns([
  helper.accessor("createdAt", { header: "When", cell: ({ getValue }) => moment(getValue()) }),
  helper.accessor("action", { header: "Action" }),
  helper.accessor((trace) => trace.label ?? trace.memoryType ?? "", { id: "memory", header: "Memory", cell: ({ getValue }) => words(getValue()) }),
  helper.accessor("actor", { header: "By", cell: ({ getValue }) => actor(words(getValue() ?? "")) }),
  helper.accessor("revision", { header: "Revision", cell: ({ getValue }) => getValue() ?? "" }),
  helper.accessor(fullness, { id: "full", header: "Full, or fits" }),
  helper.accessor("reason", { header: "Reason", cell: ({ getValue }) => getValue() ?? "" }),
]);

/** How full a block was, or how well a memory fitted. */
function fullness({ utilization, confidence }: TraceFacts): string {
  if (utilization !== null) return `${utilization} %`;
  return confidence === null ? "" : `fits ${percent(confidence)}`;
}

interface TraceTableProps {
  rows: readonly TraceFacts[];
  opened: string | undefined;
  onOpen: (id: string) => void;
  /** Called when the last rows come into sight. */
  onEnd: () => void;
}

export function TraceTable({ rows, opened, onOpen, onEnd }: TraceTableProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const table = useTable({ features, columns, data: rows as TraceFacts[], getRowId: ({ id }) => id });
  const all = table.getRowModel().rows;
  const virtual = useVirtualizer({ count: all.length, getScrollElement: () => scroller.current, estimateSize: () => ROW_HEIGHT, overscan: 10 });
  const shown = virtual.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (last >= all.length - NEAR_THE_END) onEnd();
  }, [last, all.length]);
  return (
    <div className="trace-table" ref={scroller} tabIndex={0} role="table" aria-label="Memory traces" aria-rowcount={all.length + 1}>
      <div role="rowgroup" className="trace-head">
        {table.getHeaderGroups().map((group) => (
          <div role="row" key={group.id} aria-rowindex={1}>
            {group.headers.map((header) => (
              <div role="columnheader" key={header.id}>
                <table.FlexRender header={header} />
              </div>
            ))}
          </div>
        ))}
      </div>
      <div role="rowgroup" className="trace-rows" style={{ height: virtual.getTotalSize() }}>
        {shown.map(({ index, start }) => {
          const row = all[index];
          if (!row) return null;
          return (
            <div role="row" key={row.id} aria-rowindex={index + 2} data-opened={row.id === opened} data-action={row.original.action} style={{ transform: `translateY(${start}px)` }} onClick={() => onOpen(row.id)}>
              {row.getAllCells().map((cell, place) => (
                <div role="cell" key={cell.id}>
                  {place === 0 ? (
                    <button type="button" className="quiet" aria-label={`Open the trace of ${moment(row.original.createdAt)}`}>
                      <table.FlexRender cell={cell} />
                    </button>
                  ) : (
                    <table.FlexRender cell={cell} />
                  )}
                </div>
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}
