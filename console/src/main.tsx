/** Starts the page: a client, the chat made from its events, and the components that show it. */

import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Chat } from "./chat/chat.ts";
import { App } from "./page/App.tsx";
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

createRoot(document.getElementById("page") as HTMLElement).render(
  <StrictMode>
    <App chat={chat} />
  </StrictMode>,
);
client.open();
window.addEventListener("online", () => client.retryNow());
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && client.retryNow());
// Opening a printed address in a tab that shows the page changes only the part after `#`.
window.addEventListener("hashchange", () => client.open());
// Another tab has signed out, or somebody else has signed in there.
window.addEventListener("storage", ({ key, newValue }) => (key === PERSON_KEY || key === null) && newValue === null && client.identifyAgain());
// "Back" may restore this page as it was before somebody signed out.
window.addEventListener("pageshow", ({ persisted }) => persisted && window.location.reload());

function browserMemory(): Memory {
  try {
    return new StorageMemory(window.localStorage);
  } catch {
    return new PassingMemory();
  }
}
