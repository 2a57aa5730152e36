/** Starts the page: a client, the chat made from its events, and the components that show it. */

import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { createQueries } from "./api/queries.ts";
import { Chat } from "./chat/chat.ts";
import { conversationIn } from "./page/address.ts";
import { createPages } from "./page/router.tsx";
import { dialServer, endSession, identify } from "./page/session.ts";
import "./page/style.css";
import { Client, PERSON_KEY, PassingMemory, StorageMemory, type Memory } from "./protocol/index.ts";

const client: Client = new Client({
  dial: dialServer(() => client.conversationId),
  identify,
  memory: browserMemory(),
  configuration: {
    clientVersion: "console",
    device: "web",
    preferredLanguage: navigator.language,
    timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    features: ["streaming"],
  },
});
const chat = new Chat(client, endSession);
const queries = createQueries(() => client.identifyAgain());
client.listen((event) => event.kind === "person" && queries.clear());
const router = createPages(chat, queries);

createRoot(document.getElementById("page") as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
start();
for (const change of ["online", "offline"]) window.addEventListener(change, () => client.reconnect());
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && client.retryNow());
// Opening a printed address in a tab that shows the page changes only the part after `#`.
window.addEventListener("hashchange", () => window.location.hash && start());
// Another tab has signed out, or somebody else has signed in there.
window.addEventListener("storage", ({ key, newValue }) => (key === PERSON_KEY || key === null) && newValue === null && client.identifyAgain());
// "Back" may restore this page as it was before somebody signed out.
window.addEventListener("pageshow", ({ persisted }) => persisted && window.location.reload());

/** The chat opens a conversation; other views only need to know who is signed in. */
function start(): void {
  const conversation = conversationIn(window.location.pathname);
  if (conversation === null) client.recognize();
  else client.open(conversation || undefined);
}

function browserMemory(): Memory {
  try {
    return new StorageMemory(window.localStorage);
  } catch {
    return new PassingMemory();
  }
}
