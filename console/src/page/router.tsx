/** The addresses of the page. Every view has one; all but the chat are loaded when they are first opened. */

import type { QueryClient } from "@tanstack/react-query";
import { createRootRouteWithContext, createRoute, createRouter, lazyRouteComponent, retainSearchParams } from "@tanstack/react-router";
import { LABELS, type Label } from "../api/types.ts";
import type { Chat } from "../chat/chat.ts";
import { ChatPage } from "./chat/ChatPage.tsx";
import { Broken, NotFound, Shell } from "./Shell.tsx";

export interface PageContext {
  readonly chat: Chat;
  readonly queries: QueryClient;
}

const root = createRootRouteWithContext<PageContext>()({
  component: Shell,
  notFoundComponent: NotFound,
  validateSearch: (search: Record<string, unknown>): { livekit?: string | undefined } => ("livekit" in search ? { livekit: "" } : {}),
  search: { middlewares: [retainSearchParams(["livekit"])] },
});

// One layout for both addresses of the chat, so that the draft stays when a conversation gets its address.
const chat = createRoute({ getParentRoute: () => root, id: "chat", component: ChatPage });
const current = createRoute({ getParentRoute: () => chat, path: "/" });
const conversation = createRoute({ getParentRoute: () => chat, path: "/chat/$conversationId" });

const why = createRoute({
  getParentRoute: () => root,
  path: "/why/$messageId",
  component: lazyRouteComponent(() => import("../views/why/Why.tsx"), "Why"),
});

const blocks = createRoute({
  getParentRoute: () => root,
  path: "/chat/$conversationId/blocks",
  validateSearch: ({ turn, label, revision }: Record<string, unknown>): BlocksSearch => ({
    turn: positive(turn),
    label: LABELS.find((known) => known === label),
    revision: positive(revision),
  }),
  component: lazyRouteComponent(() => import("../views/blocks/Blocks.tsx"), "Blocks"),
});

const journey = createRoute({
  getParentRoute: () => root,
  path: "/retrievals/$retrievalId",
  component: lazyRouteComponent(() => import("../views/journey/Journey.tsx"), "Journey"),
});

/** What the view of the blocks shows: the state after a turn, and the revisions of one block. */
interface BlocksSearch {
  readonly turn?: number | undefined;
  readonly label?: Label | undefined;
  readonly revision?: number | undefined;
}

function positive(value: unknown): number | undefined {
  return Number.isInteger(value) && Number(value) > 0 ? Number(value) : undefined;
}

export function createPages(chatStore: Chat, queries: QueryClient) {
  return createRouter({
    routeTree: root.addChildren([chat.addChildren([current, conversation]), blocks, why, journey]),
    context: { chat: chatStore, queries },
    defaultPreload: false,
    defaultErrorComponent: Broken,
  });
}

/** The conversation that an address of the chat names: empty for none, null if it is an address of another view. */
export function conversationIn(path: string): string | null {
  if (path === "/") return "";
  return /^\/chat\/([^/]+)\/?$/.exec(path)?.[1] ?? null;
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createPages>;
  }
}
