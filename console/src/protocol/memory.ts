/**
 * What a client remembers of one conversation, and where.
 *
 * It is a log with one entry per stanza, both ways. Nothing else is stored: the last number seen is that of the newest
 * entry, and what a page shows is made from the entries. So the number and what it led to cannot drift apart, however
 * suddenly a page is closed, and two tabs can write side by side.
 */

import type { ClientName, Said } from "./messages.ts";

/** What became of a message of ours. `refused` quotes the server, which says what to do next. */
export type Fate =
  | { readonly state: "waiting" }
  | { readonly state: "acknowledged"; readonly success: boolean }
  | { readonly state: "refused"; readonly code: number; readonly message: string };

/** A stanza of the server. `number` is its absolute value; null stands for one we cannot read. */
export interface ServerEntry {
  readonly from: "server";
  readonly number: number;
  readonly said: Said | null;
}

/** A stanza of ours. `after` is the server's number we had seen, which gives it its place; `key` is its name here. */
export interface ClientEntry {
  readonly from: "client";
  readonly key: string;
  readonly number: number;
  readonly after: number;
  readonly said: Said<ClientName>;
  readonly fate: Fate;
}

export type Entry = ServerEntry | ClientEntry;

/** One conversation as remembered, entries in the order in which they were seen and said. */
export interface Remembered {
  readonly conversationId: string;
  readonly entries: readonly Entry[];
}

/** Where a client keeps its conversation. Each call is all or nothing. */
export interface Memory {
  load(): Remembered | null;
  /** Remember this conversation from now on, and forget any other. */
  begin(conversationId: string): void;
  /** Add an entry, or replace the one of the same key. False when there is no room left. */
  keep(conversationId: string, entry: Entry): boolean;
  forget(): void;
}

const ROOT = "anamnesis/";
const CURRENT = `${ROOT}conversation`;
const TRACES_EMPTIED_AT_ONCE = 50;

/** The browser's own storage: survives a reload, is shared by the tabs of one address, holds about 5 MB. */
export class StorageMemory implements Memory {
  readonly #storage: Storage;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  load(): Remembered | null {
    const conversationId = this.#storage.getItem(CURRENT);
    if (!conversationId) return null;
    const entries = this.#keys(`${ROOT}${conversationId}/`).flatMap((key) => this.#read(key) ?? []);
    return { conversationId, entries: entries.sort(inOrder) };
  }

  begin(conversationId: string): void {
    this.forget();
    this.#put(CURRENT, conversationId);
  }

  keep(conversationId: string, entry: Entry): boolean {
    const key = entry.from === "server" ? `s${entry.number}` : `c${entry.key}`;
    return this.#put(`${ROOT}${conversationId}/${key}`, JSON.stringify(entry, withoutBytes));
  }

  forget(): void {
    for (const key of this.#keys(ROOT)) this.#storage.removeItem(key);
  }

  #keys(prefix: string): string[] {
    const all = Array.from({ length: this.#storage.length }, (_, index) => this.#storage.key(index) ?? "");
    return all.filter((key) => key.startsWith(prefix));
  }

  #read(key: string): Entry | null {
    try {
      return JSON.parse(this.#storage.getItem(key) ?? "null") as Entry | null;
    } catch {
      return null;
    }
  }

  #put(key: string, value: string): boolean {
    do {
      try {
        this.#storage.setItem(key, value);
        return true;
      } catch {
        // No room: the only reason for which storing a text fails.
      }
    } while (this.#makeRoom());
    return false;
  }

  /** The texts of the oldest traces go first: they are the largest by far, and the server has them. */
  #makeRoom(): boolean {
    const full = this.#keys(ROOT)
      .map((key) => ({ key, entry: key.includes("/s") ? this.#read(key) : null }))
      .filter(({ entry }) => entry?.said?.name === "MemoryTrace" && entry.said.body.content !== "")
      .sort((one, other) => (one.entry?.number ?? 0) - (other.entry?.number ?? 0))
      .slice(0, TRACES_EMPTIED_AT_ONCE);
    for (const { key, entry } of full) {
      this.#storage.setItem(key, JSON.stringify({ ...entry, said: emptied(entry?.said) }));
    }
    return full.length > 0;
  }
}

/** Keeps nothing beyond the page: for tests, and for browsers whose storage is switched off. */
export class PassingMemory implements Memory {
  #conversationId: string | null = null;
  #entries = new Map<string, Entry>();

  load(): Remembered | null {
    if (this.#conversationId === null) return null;
    return { conversationId: this.#conversationId, entries: [...this.#entries.values()].sort(inOrder) };
  }

  begin(conversationId: string): void {
    this.#entries.clear();
    this.#conversationId = conversationId;
  }

  keep(_: string, entry: Entry): boolean {
    this.#entries.set(entry.from === "server" ? `s${entry.number}` : `c${entry.key}`, entry);
    return true;
  }

  forget(): void {
    this.#entries.clear();
    this.#conversationId = null;
  }
}

function inOrder(one: Entry, other: Entry): number {
  return place(one) - place(other) || rank(one) - rank(other) || one.number - other.number;
}

const place = (entry: Entry) => (entry.from === "server" ? entry.number : entry.after);
const rank = (entry: Entry) => (entry.from === "server" ? 0 : 1);

const withoutBytes = (_: string, value: unknown) => (value instanceof Uint8Array ? undefined : value);

function emptied(said: Said | null | undefined): Said | null {
  if (said?.name !== "MemoryTrace") return said ?? null;
  return { ...said, body: { ...said.body, content: "", metadata: { ...said.body.metadata, forgotten: true } } };
}
