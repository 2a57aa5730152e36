/** Who is asking: the key after `#` in the printed address, traded once for a cookie that scripts cannot read. */

import { NotAuthenticated, dialLiveKit, dialWebSocket, type Dial } from "../protocol/index.ts";

const SESSION = "/v1/session";

/** Dial this page's own server, after making sure that it knows us: its WebSocket, or with `?livekit` a room. */
export function dialHome(conversationId: () => string): Dial {
  const { protocol, host, search } = window.location;
  const dial = new URLSearchParams(search).has("livekit")
    ? dialLiveKit("", conversationId)
    : dialWebSocket(`${protocol === "https:" ? "wss:" : "ws:"}//${host}/v1/ws`);
  return async (events) => {
    await authenticate();
    return dial(events);
  };
}

/** A browser does not tell why a WebSocket was refused, so the question is asked over HTTP first. */
async function authenticate(): Promise<void> {
  const key = keyInAddress();
  const response = key
    ? await fetch(SESSION, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ key }) })
    : await fetch(SESSION, { cache: "no-store" });
  if (response.status === 429 || response.status >= 500) throw new Error(`the server answered ${response.status}`);
  if (key) window.history.replaceState(null, "", window.location.pathname + window.location.search);
  if (response.status === 401 || response.status === 403) throw new NotAuthenticated();
}

function keyInAddress(): string {
  return window.location.hash.slice(1).replace(/^key=/, "");
}
