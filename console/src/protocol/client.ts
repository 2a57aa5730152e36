/**
 * A client of the protocol: one conversation over connections that come and go, with nothing lost and nothing twice.
 *
 *     const client = new Client({ dial: dialWebSocket("ws://127.0.0.1:8321/v1/ws"), memory: new PassingMemory() });
 *     client.listen((event) => { if (event.kind === "entry") show(event.entry); });
 *     client.open();
 *     client.send({ name: "UserMessage", body: { id: newId("msg"), content: "I am having a headache" } });
 *
 * How it keeps its promise:
 * - Server stanzas are taken in the order of their numbers. One at or below the last seen is dropped; one too high
 *   shows that something is missing, and a new connection with `lastSequenceSeen` brings it.
 * - A message of ours is remembered before it is sent, under a number it keeps, and sent again on every new
 *   connection until the server has answered it. A resuming Configuration has number 0: a higher one would put the
 *   unanswered below it out of order. One that the server could not take now, however often, is refused at last.
 * - Whoever listens hears each entry once, after it was remembered. An entry of ours is heard again when its fate changes.
 */

import { BadPacket, decode, encode, type Envelope } from "./codec.ts";
import { newId } from "./ids.ts";
import type { ClientEntry, Entry, Fate, Memory } from "./memory.ts";
import type { Body, ClientName, Said } from "./messages.ts";
import { NotAuthenticated, Refused, type Dial, type Socket } from "./socket.ts";

/** How the client stands with the server. Only `lost` passes by itself. */
export type Connection =
  | { readonly state: "closed" | "connecting" | "open" | "lost" }
  /** The server does not know who is asking; `open()` again after that changed. */
  | { readonly state: "unauthenticated" }
  /** A newer connection took the conversation over; `open()` takes it back. */
  | { readonly state: "elsewhere" }
  /** The conversation cannot be opened, and trying again would not help: `startOver()`. */
  | { readonly state: "refused"; readonly error: Body<"ErrorMessage"> };

/** What a listener hears. */
export type ClientEvent =
  /** All that was remembered, when the client opens; forget what came before. */
  | { readonly kind: "entries"; readonly entries: readonly Entry[] }
  | { readonly kind: "entry"; readonly entry: Entry }
  | { readonly kind: "connection"; readonly connection: Connection }
  | { readonly kind: "server"; readonly info: Body<"ServerInfo"> }
  /** An error that belongs to no message of ours. */
  | { readonly kind: "error"; readonly error: Body<"ErrorMessage"> }
  /** What a person in danger reads before the answer itself can be stored. */
  | { readonly kind: "urgent"; readonly text: string }
  /** The server's stanzas `from` … `to` could not be had, also not by asking again. */
  | { readonly kind: "missing"; readonly from: number; readonly to: number }
  /** There is no room to remember more; a reload will not show it. */
  | { readonly kind: "unremembered" };

/** What a client is made of. */
export interface ClientOptions {
  readonly dial: Dial;
  readonly memory: Memory;
  /** What the Configuration says beside the numbers: language, device, features. */
  readonly configuration?: Body<"Configuration">;
  /** Between 0 and 1, for the jitter. */
  readonly random?: () => number;
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;
const PATIENCE_MS = 15_000;
const MOST_TRIES = 6; // with the pauses between them, about a quarter of a minute
const CODE = { outOfOrder: 101, invalidState: 202, busy: 204, server: 500 } as const;

/** See the top of this file. All methods return at once; what comes of them is heard by listeners. */
export class Client {
  readonly #options: ClientOptions;
  readonly #listeners = new Set<(event: ClientEvent) => void>();
  #connection: Connection = { state: "closed" };
  #conversationId = "";
  #seen = 0;
  #count = 1;
  #waiting: ClientEntry[] = [];
  #socket: Socket | null = null;
  #dialled = 0;
  #greeted = false;
  #attempts = 0;
  #gapAfter = -1;
  #renumbered = new Set<string>();
  #tries = new Map<string, number>();
  #remembers = true;
  #timers: { pause?: Timer; patience?: Timer; calm?: Timer } = {};

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  get connection(): Connection {
    return this.#connection;
  }

  /** Empty until the server has opened a conversation for us. */
  get conversationId(): string {
    return this.#conversationId;
  }

  listen(listener: (event: ClientEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Go on with the remembered conversation, or begin one. */
  open(): void {
    const remembered = this.#options.memory.load();
    const entries = remembered?.entries ?? [];
    const numbers = (from: Entry["from"]) => entries.filter((entry) => entry.from === from).map(({ number }) => number);
    this.#conversationId = remembered?.conversationId ?? "";
    this.#seen = Math.max(0, ...numbers("server"));
    this.#count = Math.max(1, ...numbers("client")); // 1 is the Configuration that began the conversation
    this.#waiting = entries.filter((entry) => entry.from === "client").filter(({ fate }) => fate.state === "waiting");
    this.#attempts = 0;
    this.#tell({ kind: "entries", entries });
    this.#connect();
  }

  /** Leave. What was remembered stays. */
  close(): void {
    this.#hangUp({ state: "closed" });
  }

  /** Forget the conversation and begin a new one. The server keeps the old one. */
  startOver(): void {
    this.#options.memory.forget();
    this.open();
  }

  /** If a new connection is being waited for, try now. */
  hurry(): void {
    if (this.#connection.state === "lost") this.#connect();
  }

  /** Send a message; if there is no connection, as soon as there is one. Needs a conversation. */
  send(said: Said<ClientName>): void {
    if (!this.#conversationId) throw new Error("there is no conversation yet");
    const [key, number] = [newId("msg"), ++this.#count];
    const entry: ClientEntry = { from: "client", key, number, after: this.#seen, said, fate: { state: "waiting" } };
    this.#waiting.push(entry);
    this.#remember(entry);
    if (this.#greeted) this.#post(entry);
  }

  // --- connections ------------------------------------------------------------------------------------------------

  #connect(): void {
    this.#hangUp({ state: "connecting" });
    const dialled = this.#dialled;
    const current = <A extends unknown[]>(act: (...args: A) => void) => (...args: A) => {
      if (dialled === this.#dialled) act(...args);
    };
    this.#await(() => this.#lose());
    this.#options.dial({ packet: current((packet) => this.#receive(packet)), closed: current(() => this.#lose()) }).then(
      (socket) => (dialled === this.#dialled ? this.#greet(socket) : socket.close()),
      current((error) => {
        if (error instanceof NotAuthenticated) this.#hangUp({ state: "unauthenticated" });
        else if (error instanceof Refused) this.#hangUp({ state: "refused", error: error.error });
        else this.#lose();
      }),
    );
  }

  #greet(socket: Socket): void {
    this.#socket = socket;
    const known = this.#conversationId !== "";
    const body = { ...this.#options.configuration, ...(known && { lastSequenceSeen: this.#seen }) };
    socket.send(encode(known ? 0 : 1, this.#conversationId, { name: "Configuration", body }));
  }

  /** The connection broke, or is of no use: try again, at first soon, then ever more rarely. */
  #lose(): void {
    this.#hangUp({ state: "lost" });
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** this.#attempts++, LONGEST_PAUSE_MS);
    const jitter = 0.5 + (this.#options.random ?? Math.random)() / 2;
    this.#timers.pause = setTimeout(() => this.#connect(), pause * jitter);
  }

  #hangUp(connection: Connection): void {
    for (const timer of Object.values(this.#timers)) clearTimeout(timer);
    this.#timers = {};
    this.#dialled += 1;
    this.#greeted = false;
    this.#socket?.close();
    this.#socket = null;
    this.#connection = connection;
    this.#tell({ kind: "connection", connection });
  }

  /** Do something if the server stays silent for too long. */
  #await(giveUp: () => void): void {
    clearTimeout(this.#timers.patience);
    this.#timers.patience = setTimeout(giveUp, PATIENCE_MS);
  }

  #post(entry: ClientEntry): void {
    this.#socket?.send(encode(entry.number, this.#conversationId, entry.said));
    if (this.#timers.patience === undefined) this.#await(() => this.#lose());
  }

  // --- what the server says ---------------------------------------------------------------------------------------

  #receive(packet: Uint8Array): void {
    let envelope: Envelope;
    try {
      envelope = decode(packet);
    } catch (error) {
      if (error instanceof BadPacket) return; // If it had a number, the next one shows that it is missing.
      throw error;
    }
    const { stanzaId, conversationId, said } = envelope;
    if (stanzaId === 0) this.#attend(conversationId, said);
    if (stanzaId >= 0 || !this.#greeted || conversationId !== this.#conversationId) return;
    const number = -stanzaId;
    this.#settle(said);
    if (number <= this.#seen) return;
    if (number > this.#seen + 1 && !this.#givesUp(number)) return this.#lose();
    this.#seen = number;
    this.#remember({ from: "server", number, said });
  }

  /** After a gap, ask once more from before it; if it is still there, say so and go on. */
  #givesUp(number: number): boolean {
    const again = this.#gapAfter === this.#seen;
    this.#gapAfter = this.#seen;
    if (again) this.#tell({ kind: "missing", from: this.#seen + 1, to: number - 1 });
    return again;
  }

  /** Stanza 0: what concerns this connection only. */
  #attend(conversationId: string, said: Said | null): void {
    if (said?.name === "Configuration" && !this.#greeted) this.#begin(conversationId, said.body);
    else if (said?.name === "ErrorMessage") this.#refuse(said.body);
    else if (said?.name === "AssistantSentence") this.#tell({ kind: "urgent", text: said.body.text });
    else if (said?.name === "ServerInfo") this.#tell({ kind: "server", info: said.body });
    else this.#settle(said);
  }

  #begin(conversationId: string, { lastClientStanza = 0 }: Body<"Configuration">): void {
    if (!this.#conversationId) this.#options.memory.begin(conversationId);
    this.#conversationId = conversationId;
    this.#count = Math.max(this.#count, lastClientStanza);
    this.#greeted = true;
    clearTimeout(this.#timers.patience);
    this.#timers = { calm: setTimeout(() => (this.#attempts = 0), PATIENCE_MS) };
    this.#connection = { state: "open" };
    this.#tell({ kind: "connection", connection: this.#connection });
    for (const entry of [...this.#waiting]) this.#post(entry);
  }

  #refuse(error: Body<"ErrorMessage">): void {
    const passing = error.code === CODE.busy || error.code > CODE.server;
    if (error.code === CODE.invalidState && !error.recoverable) return this.#hangUp({ state: "elsewhere" });
    if (!this.#greeted) return passing ? this.#lose() : this.#hangUp({ state: "refused", error });
    // Frames are answered in their order, so a refusal that names none is about the oldest.
    const refused = error.originatingId ? this.#byId(error.originatingId) : this.#waiting[0];
    if (!refused) this.#tell({ kind: "error", error });
    else if (passing && this.#maySendAgain(refused)) this.#lose();
    else if (error.code === CODE.outOfOrder && !this.#renumbered.has(refused.key)) this.#renumber(refused);
    else this.#decide(refused, { state: "refused", code: error.code, message: error.message });
  }

  /** What passes for others may not pass for this message, so it is not sent for ever. */
  #maySendAgain({ key }: ClientEntry): boolean {
    const tries = (this.#tries.get(key) ?? 0) + 1;
    this.#tries.set(key, tries);
    return tries < MOST_TRIES;
  }

  /** Another tab used our number. The message's id still protects it from being taken twice. */
  #renumber(entry: ClientEntry): void {
    this.#renumbered.add(entry.key);
    const renumbered = { ...entry, number: ++this.#count };
    this.#waiting = this.#waiting.map((one) => (one === entry ? renumbered : one));
    this.#remember(renumbered);
    this.#post(renumbered);
  }

  /** If this answers a message of ours, that one need not be sent again. */
  #settle(said: Said | null): void {
    const [answered, success] = this.#answered(said);
    if (answered) this.#decide(answered, { state: "acknowledged", success });
  }

  #answered(said: Said | null): [ClientEntry | undefined, boolean] {
    switch (said?.name) {
      case "Acknowledgement":
        return [this.#waiting.find(({ number }) => number === said.body.acknowledgedStanzaId), said.body.success];
      case "NoteConfirmation":
      case "MemoryConfirmation":
        return [this.#byId(said.body.requestId), said.body.success];
      case "SyncResponse":
        return [this.#waiting.find((entry) => entry.said.name === "SyncRequest"), true];
      default:
        return [undefined, false];
    }
  }

  #byId(id: string): ClientEntry | undefined {
    return this.#waiting.find(({ said: { body } }) => "id" in body && body.id === id);
  }

  #decide(entry: ClientEntry, fate: Fate): void {
    this.#waiting = this.#waiting.filter((one) => one !== entry);
    this.#tries.delete(entry.key);
    clearTimeout(this.#timers.patience);
    delete this.#timers.patience;
    this.#attempts = 0;
    if (this.#waiting.length > 0) this.#await(() => this.#lose());
    this.#remember({ ...entry, fate });
  }

  #remember(entry: Entry): void {
    const kept = this.#options.memory.keep(this.#conversationId, entry);
    if (!kept && this.#remembers) this.#tell({ kind: "unremembered" });
    this.#remembers = kept;
    this.#tell({ kind: "entry", entry });
  }

  #tell(event: ClientEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}

type Timer = ReturnType<typeof setTimeout>;
