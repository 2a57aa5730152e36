/**
 * What a client stores of one conversation of one person, and where.
 *
 * It is a log with one entry per stanza, in both directions. Nothing else is stored: the last number received is that of
 * the newest entry, and a page is made from the entries. So the number and the page always agree, even if the page is
 * closed at any moment, and two tabs can write at the same time.
 */

import type { ClientName, Said } from "./messages.ts";

/** What happened to a message of ours. `refused` has the server's text, which says what to do next. */
export type Fate =
  | { readonly state: "waiting" }
  | { readonly state: "acknowledged"; readonly success: boolean }
  | { readonly state: "refused"; readonly code: number; readonly message: string };

/** A stanza of the server. `number` is the absolute value of its id; `said` is null if the client cannot read it. */
export interface ServerEntry {
  readonly from: "server";
  readonly number: number;
  readonly said: Said | null;
}

/** A stanza of ours. `after` is the last server stanza received before it, for the order; `key` is its storage key. */
export interface ClientEntry {
  readonly from: "client";
  readonly key: string;
  readonly number: number;
  readonly after: number;
  readonly said: Said<ClientName>;
  readonly fate: Fate;
}

export type Entry = ServerEntry | ClientEntry;

/** One stored conversation, with its entries in the order in which they were received and sent. */
export interface Remembered {
  readonly conversationId: string;
  readonly entries: readonly Entry[];
}

/** Where a client stores its conversation. Each call is atomic. */
export interface Memory {
  /** Store for this person from now on, or for nobody. What was stored for somebody else is forgotten. */
  claim(person: string | null): void;
  load(): Remembered | null;
  /** Store this conversation from now on, and forget any other. */
  begin(conversationId: string): void;
  /** Add an entry, or replace the one with the same key. False if there is no room left. */
  keep(conversationId: string, entry: Entry): boolean;
  /** Forget the conversation. */
  forget(): void;
}

const ROOT = "anamnesis/";
/** The key under which the browser stores for whom it stores. Tabs see it change when another tab signs out. */
export const PERSON_KEY = `${ROOT}person`;
const CURRENT = `${ROOT}conversation`;
const TRACES_EMPTIED_AT_ONCE = 50;

/** The browser's localStorage: it survives a reload, is shared by the tabs of one origin, and holds about 5 MB. */
export class StorageMemory implements Memory {
  readonly #storage: Storage;
  #person: string | null = null;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  claim(person: string | null): void {
    this.#person = person;
    if (this.#storage.getItem(PERSON_KEY) === person) return;
    for (const key of this.#keys(ROOT)) this.#storage.removeItem(key);
    if (person !== null) this.#put(PERSON_KEY, person);
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
    if (this.#person !== this.#storage.getItem(PERSON_KEY)) return true; // another tab has signed out: store nothing
    const key = entry.from === "server" ? `s${entry.number}` : `c${entry.key}`;
    return this.#put(`${ROOT}${conversationId}/${key}`, JSON.stringify(entry, withoutBytes));
  }

  forget(): void {
    for (const key of this.#keys(ROOT)) if (key !== PERSON_KEY) this.#storage.removeItem(key);
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
        // The storage is full: setItem fails for no other reason.
      }
    } while (this.#makeRoom());
    return false;
  }

  /** Empty the oldest traces: their texts are by far the largest, and the server keeps them. */
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

/** Stores nothing beyond the life of the page: for tests, and for browsers whose storage is switched off. */
export class PassingMemory implements Memory {
  #person: string | null = null;
  #conversationId: string | null = null;
  #entries = new Map<string, Entry>();

  claim(person: string | null): void {
    if (this.#person !== person) this.forget();
    this.#person = person;
  }

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
