/** Signs in and out. The printed address has a one-time code after `#`, which is exchanged for a session's cookie. */

import { NotAuthenticated, dialLiveKit, dialWebSocket, type Dial } from "../protocol/index.ts";

const SESSION = "/v1/session";

/** Connect to the server of this page: by its WebSocket, or with `?livekit` through a LiveKit room. */
export function dialServer(conversationId: () => string): Dial {
  const { protocol, host, search } = window.location;
  return new URLSearchParams(search).has("livekit")
    ? dialLiveKit("", conversationId)
    : dialWebSocket(`${protocol === "https:" ? "wss:" : "ws:"}//${host}/v1/ws`);
}

/** Use the code in the address, if there is one, then ask the server who is signed in. */
export async function identify(): Promise<string> {
  const code = window.location.hash.slice(1);
  if (code) {
    const headers = { "Content-Type": "application/json" };
    refuseTemporarily(await fetch(SESSION, { method: "POST", headers, body: JSON.stringify({ code }) }));
    window.history.replaceState(null, "", window.location.pathname + window.location.search);
  }
  // A code that was used before does not end the session that it started.
  const response = await fetch(SESSION, { cache: "no-store" });
  refuseTemporarily(response);
  if (!response.ok) throw new NotAuthenticated();
  return ((await response.json()) as { person: string }).person;
}

/** End the session on the server, and remove its cookie. */
export async function endSession(): Promise<void> {
  const response = await fetch(SESSION, { method: "DELETE" });
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
}

/** Throw an error, after which the client tries again, if the server cannot answer now. */
function refuseTemporarily({ status }: Response): void {
  if (status === 429 || status >= 500) throw new Error(`the server answered ${status}`);
}
