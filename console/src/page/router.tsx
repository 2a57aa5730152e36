/** The addresses of the page. Every view has one; all but the chat are loaded when they are first opened. */

import type { QueryClient } from "@tanstack/react-query";
import { createRootRouteWithContext, createRoute, createRouter, lazyRouteComponent, retainSearchParams } from "@tanstack/react-router";
import { LABELS, MEMORY_KINDS, type Label, type MemoryKind } from "../api/types.ts";
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

const memory = createRoute({
  getParentRoute: () => root,
  path: "/memory",
  validateSearch: ({ kind, q, archived, person, id }: Record<string, unknown>): MemorySearch => ({
    kind: MEMORY_KINDS.find((known) => known === kind),
    q: text(q),
    archived: archived === true ? true : undefined,
    person: text(person),
    id: text(id),
  }),
  component: lazyRouteComponent(() => import("../views/memory/Memory.tsx"), "Memory"),
});

/** Which memories are shown: of one kind, with some words, of another person, or only one. */
interface MemorySearch {
  readonly kind?: MemoryKind | undefined;
  readonly q?: string | undefined;
  readonly archived?: true | undefined;
  readonly person?: string | undefined;
  readonly id?: string | undefined;
}

function text(value: unknown): string | undefined {
  return value === undefined || value === "" ? undefined : String(value);
}

const traces = createRoute({
  getParentRoute: () => root,
  path: "/traces",
  validateSearch: ({ action, type, label, actor, since, until, conversation, of, id }: Record<string, unknown>): TracesSearch => ({
    ...period({ since, until, of }),
    action: text(action),
    type: text(type),
    label: text(label),
    actor: text(actor),
    conversation: text(conversation),
    id: text(id),
  }),
  component: lazyRouteComponent(() => import("../views/traces/Traces.tsx"), "Traces"),
});

/** Which traces are listed (docs/api.md), and which one is open. */
interface TracesSearch extends Period {
  readonly action?: string | undefined;
  readonly type?: string | undefined;
  readonly label?: string | undefined;
  readonly actor?: string | undefined;
  readonly conversation?: string | undefined;
  readonly id?: string | undefined;
}

/** From when until when, and whether of oneself or of everybody. */
interface Period {
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly of?: "all" | undefined;
}

function period({ since, until, of }: Record<string, unknown>): Period {
  return { since: text(since), until: text(until), of: of === "all" ? "all" : undefined };
}

const overview = createRoute({
  getParentRoute: () => root,
  path: "/overview",
  validateSearch: ({ days, of }: Record<string, unknown>): { days?: number | undefined; of?: "all" | undefined } => ({ days: positive(days), of: of === "all" ? "all" : undefined }),
  component: lazyRouteComponent(() => import("../views/overview/Overview.tsx"), "Overview"),
});

const turns = createRoute({
  getParentRoute: () => root,
  path: "/turns",
  validateSearch: (search: Record<string, unknown>): Period & { specialist?: string | undefined; error?: string | undefined; slowerThan?: number | undefined; station?: string | undefined; stationSlowerThan?: number | undefined } => ({
    ...period(search),
    specialist: text(search["specialist"]),
    error: text(search["error"]),
    slowerThan: number(search["slowerThan"]),
    station: text(search["station"]),
    stationSlowerThan: number(search["stationSlowerThan"]),
  }),
  component: lazyRouteComponent(() => import("../views/overview/Rows.tsx"), "Turns"),
});

const rotations = createRoute({
  getParentRoute: () => root,
  path: "/rotations",
  validateSearch: (search: Record<string, unknown>): Period => period(search),
  component: lazyRouteComponent(() => import("../views/overview/Rows.tsx"), "Rotations"),
});

const alarms = createRoute({
  getParentRoute: () => root,
  path: "/alarms",
  validateSearch: (search: Record<string, unknown>): Period & { certainty?: string | undefined } => ({ ...period(search), certainty: text(search["certainty"]) }),
  component: lazyRouteComponent(() => import("../views/overview/Rows.tsx"), "Alarms"),
});

/** What the view of the blocks shows: the state after a turn, and the revisions of one block. */
interface BlocksSearch {
  readonly turn?: number | undefined;
  readonly label?: Label | undefined;
  readonly revision?: number | undefined;
}

function number(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function positive(value: unknown): number | undefined {
  return Number.isInteger(value) && Number(value) > 0 ? Number(value) : undefined;
}

export function createPages(chatStore: Chat, queries: QueryClient) {
  return createRouter({
    routeTree: root.addChildren([chat.addChildren([current, conversation]), blocks, why, journey, memory, traces, overview, turns, rotations, alarms]),
    context: { chat: chatStore, queries },
    defaultPreload: false,
    defaultErrorComponent: Broken,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createPages>;
  }
}
