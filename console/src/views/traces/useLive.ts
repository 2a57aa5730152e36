/** New traces as the server sends them. The browser reconnects by itself, and the server continues where it was. */

import { useEffect, useState } from "react";
import { address, type Query } from "../../api/http.ts";
import type { TraceFacts } from "../../api/types.ts";

const MOST_KEPT = 5_000;

export function useLive(query: Query): { live: readonly TraceFacts[]; state: "open" | "waiting" } {
  const [live, setLive] = useState<readonly TraceFacts[]>([]);
  const [state, setState] = useState<"open" | "waiting">("waiting");
  const url = address("/v1/traces/stream", query);
  useEffect(() => {
    setLive([]);
    const source = new EventSource(url);
    source.onopen = () => setState("open");
    source.onerror = () => setState("waiting");
    source.addEventListener("trace", ({ data }) => {
      const trace = JSON.parse(String(data)) as TraceFacts;
      setLive((earlier) => (earlier.some(({ id }) => id === trace.id) ? earlier : [trace, ...earlier].slice(0, MOST_KEPT)));
    });
    return () => source.close();
  }, [url]);
  return { live, state };
}
