import { describe, expect, test } from "vitest";
import { StorageMemory, type ClientEntry, type Entry } from "../src/protocol/index.ts";

/** The browser's storage with a quota of our own. */
class SmallStorage implements Storage {
  readonly #held = new Map<string, string>();
  readonly #most: number;

  constructor(most = Infinity) {
    this.#most = most;
  }

  get length(): number {
    return this.#held.size;
  }

  key(index: number): string | null {
    return [...this.#held.keys()][index] ?? null;
  }

  getItem(key: string): string | null {
    return this.#held.get(key) ?? null;
  }

  setItem(key: string, value: string): void {
    const others = [...this.#held].reduce((sum, [name, held]) => sum + (name === key ? 0 : held.length), 0);
    if (others + value.length > this.#most) throw new DOMException("full", "QuotaExceededError");
    this.#held.set(key, value);
  }

  removeItem(key: string): void {
    this.#held.delete(key);
  }

  clear(): void {
    this.#held.clear();
  }
}

const trace = (number: number, content: string): Entry => ({
  from: "server",
  number,
  said: { name: "MemoryTrace", body: { id: `trace_${number}`, memoryId: "mem", action: "retrieved", content } },
});

const message = (number: number, after: number): ClientEntry => ({
  from: "client",
  key: `k${number}`,
  number,
  after,
  said: { name: "UserMessage", body: { id: `msg_${number}`, content: "hello" } },
  fate: { state: "waiting" },
});

describe("the browser's storage", () => {
  test("gives back what was kept, in the order of the conversation", () => {
    const storage = new SmallStorage();
    const memory = new StorageMemory(storage);
    memory.begin("conv_1");
    const said = [message(2, 0), message(3, 2), message(4, 2), message(5, 10)] as const;
    const entries = [said[0], trace(1, "a"), trace(2, "b"), said[1], said[2], trace(10, "c"), said[3]];

    for (const entry of [...entries].reverse()) memory.keep("conv_1", entry);

    expect(new StorageMemory(storage).load()).toEqual({ conversationId: "conv_1", entries });
  });

  test("replaces a message whose fate is known now", () => {
    const memory = new StorageMemory(new SmallStorage());
    memory.begin("conv_1");
    memory.keep("conv_1", message(2, 0));

    const known = { ...message(2, 0), fate: { state: "acknowledged", success: true } } as const;
    memory.keep("conv_1", known);

    expect(memory.load()?.entries).toEqual([known]);
  });

  test("holds one conversation at a time and leaves what is not its own", () => {
    const storage = new SmallStorage();
    storage.setItem("somebody else's", "kept");
    const memory = new StorageMemory(storage);
    memory.begin("conv_1");
    memory.keep("conv_1", trace(1, "old"));

    memory.begin("conv_2");
    memory.keep("conv_1", trace(2, "from a tab that does not know yet"));

    expect(memory.load()).toEqual({ conversationId: "conv_2", entries: [] });
    memory.forget();
    expect([memory.load(), storage.length]).toEqual([null, 1]);
  });

  test("stores for one person and forgets what was stored for another, or for nobody", () => {
    const storage = new SmallStorage();
    storage.setItem("somebody else's", "kept");
    const memory = new StorageMemory(storage);
    memory.begin("conv_1");
    memory.keep("conv_1", trace(1, "whose?"));

    memory.claim("anna");
    expect(memory.load()).toBe(null);
    memory.begin("conv_2");
    memory.keep("conv_2", trace(1, "Anna's"));

    const reloaded = new StorageMemory(storage);
    reloaded.claim("anna");
    expect(reloaded.load()?.entries).toHaveLength(1);
    reloaded.claim("boris");
    expect(reloaded.load()).toBe(null);
    reloaded.claim(null);
    expect([storage.length, storage.getItem("somebody else's")]).toEqual([1, "kept"]);
  });

  test("stores nothing for a tab whose person has signed out in another", () => {
    const storage = new SmallStorage();
    const [tab, other] = [new StorageMemory(storage), new StorageMemory(storage)];
    tab.claim("anna");
    tab.begin("conv_1");

    other.claim(null);
    tab.keep("conv_1", trace(1, "too late"));

    expect(storage.length).toBe(0);
  });

  test("empties its oldest traces when it is full, and keeps every entry", () => {
    const memory = new StorageMemory(new SmallStorage(20_000));
    memory.begin("conv_1");

    const kept = Array.from({ length: 60 }, (_, index) => memory.keep("conv_1", trace(index + 1, "x".repeat(500))));

    const contents = memory.load()?.entries.map(({ said }) => (said?.name === "MemoryTrace" ? said.body : null));
    expect(kept.every(Boolean)).toBe(true);
    expect(contents).toHaveLength(60);
    expect(contents?.at(0)).toMatchObject({ content: "", metadata: { forgotten: true } });
    expect(contents?.at(-1)?.content).toHaveLength(500);
  });

  test("says when there is no room at all", () => {
    const memory = new StorageMemory(new SmallStorage(50));
    memory.begin("conv_1");

    expect(memory.keep("conv_1", message(2, 0))).toBe(false);
  });

  test("passes over an entry that somebody damaged", () => {
    const storage = new SmallStorage();
    const memory = new StorageMemory(storage);
    memory.begin("conv_1");
    memory.keep("conv_1", trace(1, "good"));
    storage.setItem("anamnesis/conv_1/s2", "{not JSON");

    expect(memory.load()?.entries).toHaveLength(1);
  });
});
