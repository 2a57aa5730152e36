import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { NotAuthenticated, PassingMemory, Refused, newId } from "../src/protocol/index.ts";
import { Scene } from "./scripted.ts";

const SOON = 500;
const LONG = 15_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const settled = () => vi.advanceTimersByTimeAsync(0);

/** A client that has been greeted, in a new conversation or the one of `memory`. */
async function connected(memory = new PassingMemory()): Promise<Scene> {
  const scene = new Scene(memory);
  scene.client.open();
  await settled();
  scene.line.welcome();
  return scene;
}

function say(scene: Scene, content: string): string {
  const id = newId("msg");
  scene.client.send({ name: "UserMessage", body: { id, content } });
  return id;
}

describe("the handshake", () => {
  test("a first Configuration asks for a conversation and takes the server's id", async () => {
    const scene = await connected();

    expect(scene.line.heard).toMatchObject([{ stanzaId: 1, conversationId: "", type: 12, body: { device: "test" } }]);
    expect(scene.line.heard[0]?.body).not.toHaveProperty("lastSequenceSeen");
    expect(scene.client.conversationId).toBe("conv_1");
    expect(scene.states).toEqual(["connecting", "open"]);
  });

  test("nothing is said before the server has answered the Configuration", async () => {
    const memory = new PassingMemory();
    memory.begin("conv_1");
    const scene = new Scene(memory);
    scene.client.open();
    await settled();

    say(scene, "early");

    expect(scene.line.heard).toHaveLength(1);
    scene.line.welcome();
    expect(scene.line.heard[1]).toMatchObject({ stanzaId: 2, type: 2, body: { content: "early" } });
  });

  test("without a conversation there is nothing to send into", () => {
    expect(() => say(new Scene(), "to whom?")).toThrow("no conversation");
  });

  test("a conversation the server does not know is not tried again", async () => {
    const scene = await connected();
    scene.line.drop();
    await vi.advanceTimersByTimeAsync(SOON);

    scene.line.refuse(201, { recoverable: false });
    await vi.advanceTimersByTimeAsync(10 * LONG);

    expect(scene.client.connection).toMatchObject({ state: "refused", error: { code: 201 } });
    expect(scene.lines).toHaveLength(2);
  });

  test("a server that is busy at first is asked again", async () => {
    const scene = new Scene();
    scene.client.open();
    await settled();

    scene.line.refuse(503);
    await vi.advanceTimersByTimeAsync(SOON);
    scene.line.welcome();

    expect(scene.states).toEqual(["connecting", "lost", "connecting", "open"]);
  });

  test("who is not known to the server is told so, and may come back", async () => {
    const scene = new Scene();
    scene.failing = new NotAuthenticated();
    scene.client.open();
    await vi.advanceTimersByTimeAsync(10 * LONG);
    expect(scene.states).toEqual(["connecting", "unauthenticated"]);

    scene.failing = null;
    scene.client.open();
    await settled();
    scene.line.welcome();

    expect(scene.client.connection.state).toBe("open");
  });

  test("what the server cannot do is told and not tried again", async () => {
    const scene = new Scene();
    const error = { id: "", code: 503, message: "This server has no LiveKit.", severity: 2, recoverable: false };
    scene.failing = new Refused(error);
    scene.client.open();
    await vi.advanceTimersByTimeAsync(10 * LONG);

    expect(scene.states).toEqual(["connecting", "refused"]);
    expect(scene.client.connection).toEqual({ state: "refused", error });
  });

  test("the conversation opened elsewhere is left alone until it is taken back", async () => {
    const scene = await connected();

    scene.line.refuse(202, { recoverable: false });
    scene.line.drop();
    await vi.advanceTimersByTimeAsync(10 * LONG);
    expect([scene.client.connection.state, scene.lines.length]).toEqual(["elsewhere", 1]);

    scene.client.open();
    await settled();
    expect(scene.line.heard[0]).toMatchObject({ conversationId: "conv_1", body: { lastSequenceSeen: 0 } });
  });

  test("starting over forgets the conversation and asks for another", async () => {
    const scene = await connected();
    say(scene, "old");

    scene.client.startOver();
    await settled();

    expect(scene.line.heard).toMatchObject([{ stanzaId: 1, conversationId: "" }]);
    expect(scene.events.at(-2)).toEqual({ kind: "entries", entries: [] });
  });
});

describe("what the server says", () => {
  test("is heard once and in order, whatever comes twice", async () => {
    const scene = await connected();

    for (const number of [1, 2, 2, 1, 3]) scene.line.sentence(number, `${number}`);

    expect(scene.sentences).toEqual(["1", "2", "3"]);
  });

  test("is asked for again when a number is missing", async () => {
    const scene = await connected();
    scene.line.sentence(1, "one");

    scene.line.sentence(3, "three");
    await vi.advanceTimersByTimeAsync(SOON);
    expect(scene.lines[0]?.closed).toBe(true);
    expect(scene.line.heard[0]).toMatchObject({ stanzaId: 0, body: { lastSequenceSeen: 1 } });
    scene.line.welcome(1, -3);
    scene.line.sentence(2, "two");
    scene.line.sentence(3, "three");

    expect(scene.sentences).toEqual(["one", "two", "three"]);
  });

  test("is gone when it is missing twice, and the listener is told", async () => {
    const scene = await connected();
    scene.line.sentence(3, "three");
    await vi.advanceTimersByTimeAsync(SOON);
    scene.line.welcome();

    scene.line.sentence(3, "three");

    expect(scene.events).toContainEqual({ kind: "missing", from: 1, to: 2 });
    expect(scene.sentences).toEqual(["three"]);
  });

  test("is dropped when it comes over a line that was given up", async () => {
    const scene = await connected();
    const [first] = scene.lines;
    first?.drop();
    await vi.advanceTimersByTimeAsync(SOON);
    scene.line.welcome();

    first?.sentence(1, "late");

    expect(scene.sentences).toEqual([]);
  });

  test("counts even if its type is unknown or its body is not as it should be", async () => {
    const scene = await connected();

    scene.line.say(-1, "AssistantSentence", { text: 7 } as never);
    scene.line.say(-2, "ReasoningStep", { id: "r", messageId: "m", sequence: 1, content: "…" });
    scene.line.sentence(3, "three");

    expect(scene.sentences).toEqual(["three"]);
    expect(scene.states).toEqual(["connecting", "open"]);
  });

  test("is ignored if it is no envelope, or of another conversation", async () => {
    const scene = await connected();

    scene.line.raw(new Uint8Array([0xc1]));
    scene.line.raw(new Uint8Array([0x93, 1, 2, 3]));
    scene.line.say(-1, "Acknowledgement", { acknowledgedStanzaId: 1, success: true }, "conv_2");
    scene.line.sentence(1, "one");

    expect(scene.sentences).toEqual(["one"]);
  });

  test("about nothing of ours is passed on as an error", async () => {
    const scene = await connected();

    scene.line.refuse(102);

    expect(scene.events.at(-1)).toMatchObject({ kind: "error", error: { code: 102 } });
  });
});

describe("a connection that breaks", () => {
  test("in the middle of an answer comes back with what was missed", async () => {
    const scene = await connected();
    scene.line.sentence(1, "one");

    scene.line.drop();
    await vi.advanceTimersByTimeAsync(SOON);
    scene.line.welcome(1, -3);
    for (const number of [2, 3, 4]) scene.line.sentence(number, `${number}`);

    expect(scene.line.heard[0]?.body).toMatchObject({ lastSequenceSeen: 1 });
    expect(scene.sentences).toEqual(["one", "2", "3", "4"]);
  });

  test("is tried again ever more rarely, and at once when somebody hurries", async () => {
    const scene = await connected();
    scene.failing = new Error("nobody there");
    scene.line.drop();

    const pauses: number[] = [];
    for (let last = Date.now(); pauses.length < 7; ) {
      const before = scene.states.length;
      await vi.advanceTimersToNextTimerAsync();
      if (scene.states.length === before) continue;
      pauses.push(Date.now() - last);
      last = Date.now();
    }
    expect(pauses).toEqual([500, 1000, 2000, 4000, 8000, 15_000, 15_000]);

    scene.failing = null;
    scene.client.retryNow();
    await settled();
    expect(scene.lines).toHaveLength(2);
  });

  test("is given up when the server says nothing to the Configuration", async () => {
    const scene = new Scene();
    scene.client.open();
    await settled();

    await vi.advanceTimersByTimeAsync(LONG + SOON);

    expect(scene.states).toEqual(["connecting", "lost", "connecting"]);
  });

  test("stays away after the client was closed", async () => {
    const scene = await connected();
    scene.line.drop();

    scene.client.close();
    await vi.advanceTimersByTimeAsync(10 * LONG);

    expect([scene.client.connection.state, scene.lines.length]).toEqual(["closed", 1]);
  });
});

describe("what we say", () => {
  test("is numbered from the Configuration on and acknowledged once", async () => {
    const scene = await connected();

    say(scene, "one");
    say(scene, "two");
    scene.line.acknowledge(-1, 2);

    expect(scene.line.heard.slice(1)).toMatchObject([
      { stanzaId: 2, conversationId: "conv_1", body: { content: "one", conversationId: "conv_1" } },
      { stanzaId: 3, body: { content: "two" } },
    ]);
    expect(scene.events).toContainEqual({
      kind: "entry",
      entry: expect.objectContaining({ number: 2, fate: { state: "acknowledged", success: true } }),
    });
  });

  test("goes again with the same number, id and bytes until it is acknowledged", async () => {
    const scene = await connected();
    say(scene, "done");
    say(scene, "lost");
    scene.line.acknowledge(-1, 2);
    const [, , lost] = scene.line.heard;

    scene.line.drop();
    say(scene, "typed while away");
    await vi.advanceTimersByTimeAsync(SOON);
    scene.line.welcome(2, -1);
    expect(scene.line.heard.slice(1)).toEqual([lost, expect.objectContaining({ stanzaId: 4 })]);

    scene.line.acknowledge(-2, 3);
    scene.line.acknowledge(0, 4);
    scene.line.drop();
    await vi.advanceTimersByTimeAsync(SOON);
    scene.line.welcome(4, -2);
    expect(scene.line.heard).toHaveLength(1);
  });

  test("goes over a new connection when its acknowledgement stays out", async () => {
    const scene = await connected();
    say(scene, "anybody?");

    await vi.advanceTimersByTimeAsync(LONG + SOON);
    scene.line.welcome();

    expect(scene.lines).toHaveLength(2);
    expect(scene.line.heard[1]).toMatchObject({ stanzaId: 2, body: { content: "anybody?" } });
  });

  test("that the server cannot take just now is sent again, each time later", async () => {
    const scene = await connected();
    const id = say(scene, "now?");

    scene.line.refuse(204, { originatingId: id });
    await vi.advanceTimersByTimeAsync(500);
    scene.line.welcome();
    scene.line.refuse(204, { originatingId: id });
    await vi.advanceTimersByTimeAsync(500);
    expect(scene.lines).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(500);
    scene.line.welcome();
    scene.line.acknowledge(-1, 2);

    expect(scene.lines).toHaveLength(3);
    expect(scene.client.connection.state).toBe("open");
  });

  test.each([204, 501, 504])("that the server never can take now (%i) is refused at last, and says why", async (code) => {
    const scene = await connected();
    const id = say(scene, "now?");

    for (let tries = 1; tries < 6; tries++) {
      scene.line.refuse(code, { originatingId: id });
      expect(scene.client.connection.state).toBe("lost");
      await vi.advanceTimersByTimeAsync(LONG);
      scene.line.welcome();
      expect(scene.line.heard.at(-1)?.body).toMatchObject({ id });
    }
    scene.line.refuse(code, { originatingId: id });
    await vi.advanceTimersByTimeAsync(LONG);

    expect(scene.client.connection.state).toBe("open");
    expect(scene.lines).toHaveLength(6);
    expect(scene.events.at(-1)).toMatchObject({ kind: "entry", entry: { said: { body: { id } }, fate: { state: "refused", code } } });
  });

  test("that the server refuses is not sent again, and says why", async () => {
    const scene = await connected();
    const id = say(scene, "too long");

    scene.line.refuse(103, { originatingId: id });
    scene.line.drop();
    await vi.advanceTimersByTimeAsync(SOON);
    scene.line.welcome();

    expect(scene.line.heard).toHaveLength(1);
    expect(scene.events).toContainEqual({
      kind: "entry",
      entry: expect.objectContaining({ fate: { state: "refused", code: 103, message: "No." } }),
    });
  });

  test("without an id of its own is refused in its turn", async () => {
    const scene = await connected();
    scene.client.send({ name: "ControlVariation", body: { targetId: "msg_a", mode: "regenerate" } });

    scene.line.refuse(203);

    expect(scene.events.at(-1)).toMatchObject({ kind: "entry", entry: { fate: { state: "refused", code: 203 } } });
  });

  test("under a number that another tab used gets a new one, once", async () => {
    const scene = await connected();
    const id = say(scene, "mine");

    scene.line.refuse(101, { originatingId: id });
    expect(scene.line.heard.at(-1)).toMatchObject({ stanzaId: 3, body: { id, content: "mine" } });
    scene.line.refuse(101, { originatingId: id });

    expect(scene.line.heard).toHaveLength(3);
    expect(scene.events.at(-1)).toMatchObject({ kind: "entry", entry: { fate: { state: "refused" } } });
  });

  test("goes on from the server's count when that is higher", async () => {
    const scene = new Scene();
    scene.client.open();
    await settled();
    scene.line.welcome(7);

    say(scene, "eight");

    expect(scene.line.heard[1]).toMatchObject({ stanzaId: 8 });
  });

  test("as a note, a memory or a sync is settled by its own confirmation", async () => {
    const scene = await connected();
    scene.client.send({ name: "UserNote", body: { id: "note_1", content: "n", action: "create" } });
    scene.client.send({ name: "MemoryAction", body: { id: "mem_1", action: "pin", memoryId: "m" } });
    scene.client.send({ name: "SyncRequest", body: { messages: [] } });

    scene.line.say(-1, "NoteConfirmation", { requestId: "note_1", noteId: "note_1", success: true });
    scene.line.say(-2, "MemoryConfirmation", { requestId: "mem_1", memoryId: "m", action: "pin", success: true });
    scene.line.say(-3, "SyncResponse", { syncedMessages: [], syncedAt: "2026-01-15T10:30:00.000Z" });
    scene.line.drop();
    await vi.advanceTimersByTimeAsync(SOON);
    scene.line.welcome();

    expect(scene.line.heard).toHaveLength(1);
  });
});

describe("a reload", () => {
  test("goes on with the same conversation, the last stanza seen and what was not acknowledged", async () => {
    const memory = new PassingMemory();
    const before = await connected(memory);
    say(before, "answered");
    say(before, "on its way");
    before.line.acknowledge(-1, 2);
    before.line.sentence(2, "two");

    const after = new Scene(memory);
    after.client.open();
    await settled();
    expect(after.line.heard).toMatchObject([{ stanzaId: 0, conversationId: "conv_1", body: { lastSequenceSeen: 2 } }]);
    after.line.welcome(2, -2);
    after.line.sentence(3, "three");

    expect(after.line.heard[1]).toEqual(before.line.heard[2]);
    expect(after.sentences).toEqual(["two", "three"]);
  });

  test("shows messages where they were said", async () => {
    const memory = new PassingMemory();
    const before = await connected(memory);
    say(before, "first");
    before.line.sentence(1, "answer");
    say(before, "second");
    before.line.sentence(2, "another");

    const entries = memory.load()?.entries ?? [];

    expect(entries.map((entry) => `${entry.from} ${entry.number}`)).toEqual(["client 2", "server 1", "client 3", "server 2"]);
  });
});

describe("a conversation that is opened by its id", () => {
  test("is asked for from its first stanza, and the stored one is forgotten", async () => {
    const memory = new PassingMemory();
    await connected(memory);

    const scene = new Scene(memory);
    scene.client.open("conv_2");
    await settled();

    expect(scene.line.heard).toMatchObject([{ stanzaId: 0, conversationId: "conv_2", body: { lastSequenceSeen: 0 } }]);
    expect(memory.load()).toMatchObject({ conversationId: "conv_2", entries: [] });
  });

  test("is continued after another tab has stored another one", async () => {
    const memory = new PassingMemory();
    const scene = await connected(memory);
    memory.begin("conv_2"); // by the other tab

    scene.client.open();
    await settled();

    expect(scene.line.heard).toMatchObject([{ conversationId: "conv_1" }]);
  });

  test("is not opened for another person", async () => {
    const scene = new Scene(new PassingMemory(), { signsIn: true });
    scene.client.open("conv_1");
    await settled();
    scene.line.welcome();

    scene.person = "boris";
    scene.client.open();
    await settled();

    expect(scene.line.heard).toMatchObject([{ conversationId: "" }]);
  });
});

describe("recognizing", () => {
  test("says who is signed in and opens nothing until it is asked to", async () => {
    const scene = new Scene(new PassingMemory(), { signsIn: true });

    scene.client.recognize();
    await settled();

    expect(scene.events).toContainEqual({ kind: "person", person: "anna" });
    expect([scene.client.connection.state, scene.lines.length]).toEqual(["idle", 0]);
    scene.client.open();
    await settled();
    expect(scene.lines.length).toBe(1);
  });
});

describe("signing in", () => {
  /** A memory with a conversation of Anna's in it. */
  function annasMemory(): PassingMemory {
    const memory = new PassingMemory();
    memory.claim("anna");
    memory.begin("conv_1");
    memory.keep("conv_1", { from: "server", number: 1, said: sentence("Anna's") });
    return memory;
  }

  const sentence = (text: string) =>
    ({ name: "AssistantSentence", body: { id: "s", previousId: "m", sequence: 1, text, isFinal: true } }) as const;

  test("is awaited before anything stored is given to a listener", async () => {
    const scene = new Scene(annasMemory(), { signsIn: true });

    scene.client.open();
    expect([scene.sentences, scene.client.conversationId]).toEqual([[], ""]);
    await settled();

    expect(scene.sentences).toEqual(["Anna's"]);
    expect(scene.events).toContainEqual({ kind: "person", person: "anna" });
    expect(scene.line.heard).toMatchObject([{ conversationId: "conv_1", body: { lastSequenceSeen: 1 } }]);
  });

  test("shows nothing while the server cannot be asked", async () => {
    const scene = new Scene(annasMemory(), { signsIn: true });
    scene.person = new Error("the server answered 503");

    scene.client.open();
    await vi.advanceTimersByTimeAsync(LONG);

    expect(scene.sentences).toEqual([]);
    expect(scene.client.connection.state).toBe("lost");
  });

  test("as another person forgets what was stored", async () => {
    const memory = annasMemory();
    const scene = new Scene(memory, { signsIn: true });
    scene.person = "boris";

    scene.client.open();
    await settled();

    expect([scene.sentences, memory.load()]).toEqual([[], null]);
    expect(scene.line.heard).toMatchObject([{ stanzaId: 1, conversationId: "" }]);
  });

  test.each([
    ["the connection drops", (scene: Scene) => scene.line.drop()],
    ["the storage changes", (scene: Scene) => scene.client.identifyAgain()],
  ])("as another person in another tab empties this one and leaves the conversation there: %s", async (_, notice) => {
    const memory = annasMemory();
    const scene = new Scene(memory, { signsIn: true });
    scene.client.open();
    await settled();
    scene.line.welcome();

    scene.person = "boris";
    memory.claim("boris");
    memory.begin("conv_b"); // by the other tab
    notice(scene);
    await vi.advanceTimersByTimeAsync(10 * LONG);

    expect(scene.events.filter(({ kind }) => kind === "entries").at(-1)).toEqual({ kind: "entries", entries: [] });
    expect([scene.client.connection.state, scene.client.conversationId, scene.lines.length]).toEqual(["displaced", "", 1]);

    scene.client.open();
    await settled();
    expect(scene.line.heard).toMatchObject([{ conversationId: "conv_b" }]);
  });

  test("as another person in this tab opens their conversation, even if the storage changes meanwhile", async () => {
    const scene = new Scene(annasMemory(), { signsIn: true });
    scene.client.open();
    await settled();
    scene.line.welcome();

    scene.person = "boris";
    scene.client.open();
    scene.client.identifyAgain();
    await settled();

    expect(scene.events.filter(({ kind }) => kind === "entries").at(-1)).toEqual({ kind: "entries", entries: [] });
    expect(scene.line.heard).toMatchObject([{ conversationId: "" }]);
  });

  test("as the same person again shows the conversation again", async () => {
    const scene = new Scene(annasMemory(), { signsIn: true });
    scene.client.open();
    await settled();
    scene.line.welcome();

    scene.client.identifyAgain();
    await settled();

    expect(scene.sentences).toEqual(["Anna's", "Anna's"]);
    expect(scene.line.heard).toMatchObject([{ conversationId: "conv_1", body: { lastSequenceSeen: 1 } }]);
  });

  test.each(["on the first connection", "on a later one"])("that fails with 401 forgets everything, %s", async (when) => {
    const memory = annasMemory();
    const scene = new Scene(memory, { signsIn: true });
    if (when === "on a later one") {
      scene.client.open();
      await settled();
      scene.line.welcome();
      scene.line.drop();
    }
    scene.person = new NotAuthenticated();

    scene.client.open();
    await vi.advanceTimersByTimeAsync(LONG);

    expect(scene.client.connection.state).toBe("unauthenticated");
    expect(scene.events.filter(({ kind }) => kind === "entries").at(-1)).toEqual({ kind: "entries", entries: [] });
    expect([memory.load(), scene.client.conversationId]).toEqual([null, ""]);
  });

  test("that was overtaken by another call shows nothing", async () => {
    const scene = new Scene(annasMemory(), { signsIn: true });
    scene.client.open();
    scene.client.forget();
    await settled();

    expect([scene.sentences, scene.lines, scene.client.connection.state]).toEqual([[], [], "unauthenticated"]);
  });

  test("out ends the connection and forgets everything", async () => {
    const memory = annasMemory();
    const scene = new Scene(memory, { signsIn: true });
    scene.client.open();
    await settled();
    scene.line.welcome();

    scene.client.forget();
    await vi.advanceTimersByTimeAsync(10 * LONG);

    expect([memory.load(), scene.line.closed, scene.lines.length]).toEqual([null, true, 1]);
    expect(scene.events.slice(-3)).toEqual([
      { kind: "person", person: null },
      { kind: "entries", entries: [] },
      { kind: "connection", connection: { state: "unauthenticated" } },
    ]);
  });

  test("survives a new conversation", async () => {
    const memory = annasMemory();
    const scene = new Scene(memory, { signsIn: true });
    scene.client.open();
    await settled();

    scene.client.startOver();
    await settled();
    scene.line.welcome();
    say(scene, "hello");

    const reloaded = new Scene(memory, { signsIn: true });
    reloaded.client.open();
    await settled();
    expect(reloaded.line.heard).toMatchObject([{ stanzaId: 0, conversationId: "conv_1" }]);
  });
});

test("a memory without room is told once", async () => {
  const memory = new PassingMemory();
  const scene = await connected(memory);
  memory.keep = () => false;

  scene.line.sentence(1, "one");
  scene.line.sentence(2, "two");

  expect(scene.events.filter(({ kind }) => kind === "unremembered")).toHaveLength(1);
  expect(scene.sentences).toEqual(["one", "two"]);
});
