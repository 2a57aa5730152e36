/** Every read and write of memory, newest first and live, over all conversations that one may see. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState, type FormEvent } from "react";
import { get, getFile, type Page } from "../../api/http.ts";
import { LABELS, MEMORY_KINDS, type TraceFacts } from "../../api/types.ts";
import { Empty, Failed, Loading } from "../../parts/States.tsx";
import { count, words } from "../../parts/format.ts";
import { TraceTable } from "./TraceTable.tsx";
import { OpenTrace } from "./OpenTrace.tsx";
import { merged } from "./rows.ts";
import { useLive } from "./useLive.ts";

const PAGE = 200;
const FORMATS = { csv: "CSV", jsonl: "JSON Lines", parquet: "Parquet" } as const;

export function Traces() {
  const { id, ...filter } = useSearch({ from: "/traces" });
  const navigate = useNavigate({ from: "/traces" });
  const query = { ...filter };
  const found = useInfiniteQuery({
    queryKey: ["traces", filter],
    queryFn: ({ pageParam, signal }) => get<Page<TraceFacts>>("/v1/traces", { ...query, limit: PAGE, cursor: pageParam }, signal),
    initialPageParam: "",
    getNextPageParam: ({ next }) => next ?? undefined,
  });
  const { live, state } = useLive(query);
  const rows = useMemo(() => merged(live, found.data?.pages.flatMap(({ items }) => items) ?? []), [live, found.data]);
  const open = (trace: string | undefined) => void navigate({ search: (earlier) => ({ ...earlier, id: trace }), replace: true });
  return (
    <main id="content" className="view wide traces-view" tabIndex={-1}>
      <div className="view-head">
        <h2>Memory traces</h2>
        <span className="live" data-state={state} role="status">
          {state === "open" ? "Live" : "Waiting for new traces …"}
        </span>
        <Exports filter={query} />
      </div>
      <Filters />
      {found.error && !found.data ? (
        <Failed what="the traces" error={found.error} onRetry={() => void found.refetch()} />
      ) : !found.data ? (
        <Loading what="the traces" />
      ) : rows.length === 0 ? (
        <Empty>
          {Object.values(filter).some(Boolean) ? "No trace fits these filters. Remove one of them." : "No memory was read or written yet. Write a message in the chat, and its traces appear here."}
        </Empty>
      ) : (
        <>
          <p className="quiet-text small">
            {count(rows.length, "trace")}
            {found.hasNextPage ? " so far; scroll for more" : ""}
          </p>
          <TraceTable rows={rows} opened={id} onOpen={open} onEnd={() => found.hasNextPage && !found.isFetchingNextPage && void found.fetchNextPage()} />
        </>
      )}
      {id && <OpenTrace id={id} onClose={() => open(undefined)} />}
    </main>
  );
}

function Filters() {
  const search = useSearch({ from: "/traces" });
  const navigate = useNavigate({ from: "/traces" });
  const change = (changes: Partial<typeof search>) => void navigate({ search: (earlier) => ({ ...earlier, ...changes, id: undefined }), replace: true });
  const setActor = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    change({ actor: String(new FormData(event.currentTarget).get("actor")).trim() || undefined });
  };
  return (
    <div className="filters">
      {search.conversation && (
        <button type="button" title="Show the traces of all conversations" onClick={() => change({ conversation: undefined })}>
          One conversation ×
        </button>
      )}
      <label>
        <span className="quiet-text small">Action</span>
        <select value={search.action ?? ""} onChange={({ target }) => change({ action: target.value || undefined })}>
          <option value="">all</option>
          {["retrieved", "stored", "updated"].map((action) => (
            <option key={action}>{action}</option>
          ))}
        </select>
      </label>
      <label>
        <span className="quiet-text small">Block</span>
        <select value={search.label ?? ""} onChange={({ target }) => change({ label: target.value || undefined })}>
          <option value="">all</option>
          {LABELS.map((label) => (
            <option key={label} value={label}>
              {words(label)}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span className="quiet-text small">Type</span>
        <select value={search.type ?? ""} onChange={({ target }) => change({ type: target.value || undefined })}>
          <option value="">all</option>
          {["memory_block", ...MEMORY_KINDS].map((type) => (
            <option key={type} value={type}>
              {words(type)}
            </option>
          ))}
        </select>
      </label>
      <form onSubmit={setActor}>
        <label>
          <span className="quiet-text small">Actor</span>
          <input name="actor" key={search.actor ?? ""} defaultValue={search.actor ?? ""} placeholder="operator:eve" maxLength={200} onBlur={({ target }) => change({ actor: target.value.trim() || undefined })} />
        </label>
      </form>
      <label>
        <span className="quiet-text small">From</span>
        <input type="date" value={search.since?.slice(0, 10) ?? ""} onChange={({ target }) => change({ since: target.value ? `${target.value}T00:00:00Z` : undefined })} />
      </label>
      <label>
        <span className="quiet-text small">To</span>
        <input type="date" value={search.until?.slice(0, 10) ?? ""} onChange={({ target }) => change({ until: target.value ? `${target.value}T23:59:59Z` : undefined })} />
      </label>
      <label>
        <span className="quiet-text small">Of</span>
        <select value={search.of ?? "me"} onChange={({ target }) => change({ of: target.value === "all" ? "all" : undefined })}>
          <option value="me">me</option>
          <option value="all">everybody (staff)</option>
        </select>
      </label>
    </div>
  );
}

type Query = Parameters<typeof useLive>[0];

/** The server makes the files, in one request each. */
function Exports({ filter }: { filter: Query }) {
  const [busy, setBusy] = useState("");
  const save = async (format: keyof typeof FORMATS) => {
    setBusy("Reading …");
    try {
      download(`traces.${format}`, await getFile("/v1/traces/export", { ...filter, format }));
      setBusy("");
    } catch (error) {
      setBusy(error instanceof Error ? error.message : "The traces could not be saved.");
    }
  };
  return (
    <div className="exports">
      <span role="status" className="small">
        {busy}
      </span>
      {Object.entries(FORMATS).map(([format, name]) => (
        <button key={format} type="button" onClick={() => void save(format as keyof typeof FORMATS)}>
          Save as {name}
        </button>
      ))}
    </div>
  );
}

function download(name: string, file: Blob): void {
  const url = URL.createObjectURL(file);
  Object.assign(document.createElement("a"), { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
