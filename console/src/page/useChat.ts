/** The chat of this page and what it shows. */

import { useRouteContext } from "@tanstack/react-router";
import { useSyncExternalStore } from "react";
import type { Chat, View } from "../chat/chat.ts";

export function useChat(): { chat: Chat; view: View } {
  const { chat } = useRouteContext({ from: "__root__" });
  return { chat, view: useSyncExternalStore(chat.watch, chat.view) };
}
