/** Puts the page together: a client, the conversation it holds, and what is seen of it. */

import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Chat } from "./chat/chat.ts";
import { App } from "./page/App.tsx";
import { dialHome } from "./page/session.ts";
import "./page/style.css";
import { Client, PassingMemory, StorageMemory, type Memory } from "./protocol/index.ts";

const client: Client = new Client({
  dial: dialHome(() => client.conversationId),
  memory: memoryOfThisBrowser(),
  configuration: { clientVersion: "console", device: "web", preferredLanguage: navigator.language, features: ["streaming"] },
});
const chat = new Chat(client);

createRoot(document.getElementById("page") as HTMLElement).render(
  <StrictMode>
    <App chat={chat} />
  </StrictMode>,
);
client.open();
window.addEventListener("online", () => client.hurry());
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && client.hurry());
// The printed address, opened where the page already is, only changes what stands after `#`.
window.addEventListener("hashchange", () => client.open());

function memoryOfThisBrowser(): Memory {
  try {
    return new StorageMemory(window.localStorage);
  } catch {
    return new PassingMemory();
  }
}
