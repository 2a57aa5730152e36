/**
 * A client of the protocol: one conversation over any number of connections. Each stanza is received exactly once.
 *
 *     const client = new Client({ dial: dialWebSocket("ws://127.0.0.1:8321/v1/ws"), memory: new PassingMemory() });
 *     client.listen((event) => { if (event.kind === "entry") show(event.entry); });
 *     client.open();
 *     client.send({ name: "UserMessage", body: { id: newId("msg"), content: "I am having a headache" } });
 *
 * How it works:
 * - The client handles server stanzas in the order of their numbers. It drops a number that it has handled. After a gap
 *   it reconnects with `lastSequenceSeen`, and the server sends what is missing.
 * - The client stores a message before it sends it, and sends it again, with the same number, on every new connection
 *   until the server has answered it. A Configuration that resumes a conversation has number 0, because a higher number
 *   would make those messages arrive out of order. A message that the server cannot take fails after several attempts.
 * - A listener gets each entry once, after it was stored, and again when the state of a message of ours changes.
 * - With `identify`, nothing stored is read before the server has said who is signed in. What was stored for another
 *   person is forgotten, and so is everything when nobody is signed in. If another tab has signed somebody else in, that
 *   tab gets the new person's conversation; this one waits for `open()`.
 */

import { BadPacket, decode, encode, type Envelope } from "./codec.ts";
import { newId } from "./ids.ts";
import type { ClientEntry, Entry, Fate, Memory, Remembered } from "./memory.ts";
import type { Body, ClientName, Said } from "./messages.ts";
import { NotAuthenticated, Refused, type Dial, type Socket } from "./socket.ts";

/** The state of the connection. The client leaves only `lost` by itself. */
export type Connection =
  | { readonly state: "closed" | "connecting" | "open" | "lost" }
  /** Somebody is signed in, and no conversation is open; `open()` opens one. */
  | { readonly state: "idle" }
  /** Nobody is signed in, and everything stored was forgotten. After signing in, call `open()`. */
  | { readonly state: "unauthenticated" }
  /** A newer connection has taken over the conversation; `open()` takes it back. */
  | { readonly state: "elsewhere" }
  /** Another tab has signed somebody else in; `open()` continues as that person. */
  | { readonly state: "displaced" }
  /** The conversation cannot be opened, now or later; `startOver()` starts another. */
  | { readonly state: "refused"; readonly error: Body<"ErrorMessage"> };

/** What a listener gets. */
export type ClientEvent =
  /** Everything that is stored, when the client opens or forgets; it replaces what was shown before. */
  | { readonly kind: "entries"; readonly entries: readonly Entry[] }
  | { readonly kind: "entry"; readonly entry: Entry }
  | { readonly kind: "connection"; readonly connection: Connection }
  /** Who is signed in, when that changes; null for nobody. Only with `identify`. */
  | { readonly kind: "person"; readonly person: string | null }
  | { readonly kind: "server"; readonly info: Body<"ServerInfo"> }
  /** An error that belongs to no message of ours. */
  | { readonly kind: "error"; readonly error: Body<"ErrorMessage"> }
  /** A safety sentence, sent before the answer could be stored. */
  | { readonly kind: "urgent"; readonly text: string }
  /** The server did not send the stanzas `from` … `to`, even when asked again. */
  | { readonly kind: "missing"; readonly from: number; readonly to: number }
  /** The storage is full; a reload will not show the newest entries. */
  | { readonly kind: "unremembered" };

/** The parts a client needs. */
export interface ClientOptions {
  readonly dial: Dial;
  readonly memory: Memory;
  /** Asks the server who is signed in, before each connection. Rejects with `NotAuthenticated` if nobody is. */
  readonly identify?: () => Promise<string>;
  /** The other fields of the Configuration: language, device, features. */
  readonly configuration?: Body<"Configuration">;
  /** Returns a number between 0 and 1, for the jitter of the pauses. */
  readonly random?: () => number;
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;
const SILENCE_MS = 15_000;
const MAX_TRIES = 6; // about 15 seconds with the pauses between them
const CODE = { outOfOrder: 101, invalidState: 202, busy: 204, server: 500 } as const;

/** See the top of this file. Every method returns at once; listeners get the results. */
export class Client {
  readonly #options: ClientOptions;
  readonly #listeners = new Set<(event: ClientEvent) => void>();
  #connection: Connection = { state: "closed" };
  #person: string | null = null;
  #loaded = false;
  #opening = false; // until the server has said who is signed in, which may be anybody
  #idle = false; // only find out who is signed in
  #wanted = ""; // the conversation to open; empty for the stored one
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
  #hasRoom = true;
  #timers: { pause?: Timer; silence?: Timer; stable?: Timer } = {};

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

  /** Open a conversation of the person: this one, else the current or the stored one, else a new one. */
  open(conversationId = this.#conversationId): void {
    this.#idle = false;
    this.#wanted = conversationId;
    this.#opening = true;
    this.identifyAgain();
  }

  /** Find out who is signed in, for a page that shows no conversation. */
  recognize(): void {
    this.#idle = true;
    this.#opening = true;
    this.identifyAgain();
  }

  /** Ask again who is signed in, because another tab has signed out or in. Until then, nothing is shown. */
  identifyAgain(): void {
    this.#attempts = 0;
    this.#loaded = false;
    this.#show(this.#options.identify ? null : this.#load());
    this.#connect();
  }

  /** Disconnect. What is stored stays. */
  close(): void {
    this.#hangUp({ state: "closed" });
  }

  /** Disconnect and forget everything stored, as after signing out. */
  forget(): void {
    this.#opening = false;
    this.#wanted = "";
    this.#options.memory.claim(null);
    this.#options.memory.forget();
    this.#setPerson(null);
    this.#show(null);
    this.#hangUp({ state: "unauthenticated" });
  }

  /** Forget the conversation and start a new one. The server keeps the old one. */
  startOver(): void {
    this.#options.memory.forget();
    this.open("");
  }

  /** The network has changed: the connection may be dead without anybody noticing, so make a new one. */
  reconnect(): void {
    if (this.#connection.state === "open" || this.#connection.state === "lost") this.#connect();
  }

  /** If the client waits before it reconnects, reconnect now. */
  retryNow(): void {
    if (this.#connection.state === "lost") this.#connect();
  }

  /** Send a message, now or as soon as there is a connection. Needs a conversation. */
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
    this.#limitSilence();
    const events = { packet: current((packet: Uint8Array) => this.#receive(packet)), closed: current(() => this.#lose()) };
    const dial = () => (this.#idle ? Promise.reject(new Idle()) : this.#options.dial(events));
    this.#identify(dialled).then(dial).then(
      (socket) => (dialled === this.#dialled ? this.#greet(socket) : socket.close()),
      current((error) => {
        if (error instanceof NotAuthenticated) this.forget();
        else if (error instanceof Idle) this.#hangUp({ state: "idle" });
        else if (error instanceof Displaced) this.#hangUp({ state: "displaced" });
        else if (error instanceof Refused) this.#hangUp({ state: "refused", error: error.error });
        else this.#lose();
      }),
    );
  }

  /** Find out who is signed in, and load what was stored for that person unless it is loaded. */
  async #identify(dialled: number): Promise<void> {
    if (!this.#options.identify) return;
    const person = await this.#options.identify();
    if (dialled !== this.#dialled) throw new Error("this connection was given up");
    if (this.#loaded && person === this.#person) return;
    const displaced = !this.#opening && person !== this.#person;
    if (this.#person !== null && person !== this.#person) this.#wanted = ""; // it belongs to the person before
    this.#setPerson(person);
    this.#options.memory.claim(person);
    this.#show(displaced || this.#idle ? null : this.#load());
    if (displaced) throw new Displaced();
    this.#loaded = !this.#idle;
    this.#opening = false;
  }

  /** What is stored of the wanted conversation. The server sends the rest. */
  #load(): Remembered | null {
    const { memory } = this.#options;
    if (this.#wanted && memory.load()?.conversationId !== this.#wanted) memory.begin(this.#wanted);
    return memory.load();
  }

  #setPerson(person: string | null): void {
    if (person !== this.#person) this.#tell({ kind: "person", person });
    this.#person = person;
  }

  /** Take over a stored conversation, or none, and give its entries to the listeners. */
  #show(stored: Remembered | null): void {
    const entries = stored?.entries ?? [];
    const numbers = (from: Entry["from"]) => entries.filter((entry) => entry.from === from).map(({ number }) => number);
    this.#conversationId = stored?.conversationId ?? "";
    this.#seen = Math.max(0, ...numbers("server"));
    this.#count = Math.max(1, ...numbers("client")); // 1 is the Configuration that started the conversation
    this.#waiting = entries.filter((entry) => entry.from === "client").filter(({ fate }) => fate.state === "waiting");
    this.#tell({ kind: "entries", entries });
  }

  #greet(socket: Socket): void {
    this.#socket = socket;
    const known = this.#conversationId !== "";
    const body = { ...this.#options.configuration, ...(known && { lastSequenceSeen: this.#seen }) };
    socket.send(encode(known ? 0 : 1, this.#conversationId, { name: "Configuration", body }));
  }

  /** The connection broke or is useless: reconnect after a pause, which doubles each time. */
  #lose(): void {
    this.#hangUp({ state: "lost" });
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** this.#attempts++, LONGEST_PAUSE_MS);
    const jitter = 0.5 + (this.#options.random ?? Math.random)() / 2;
    this.#timers.pause = setTimeout(() => this.#connect(), pause * jitter);
  }

  /** End the connection, if there is one, and go to another state. */
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

  /** Reconnect if the server is silent for too long from now on. */
  #limitSilence(): void {
    clearTimeout(this.#timers.silence);
    this.#timers.silence = setTimeout(() => this.#lose(), SILENCE_MS);
  }

  #post(entry: ClientEntry): void {
    this.#socket?.send(encode(entry.number, this.#conversationId, entry.said));
    if (this.#timers.silence === undefined) this.#limitSilence();
  }

  // --- what the server sends ---------------------------------------------------------------------------------------

  #receive(packet: Uint8Array): void {
    let envelope: Envelope;
    try {
      envelope = decode(packet);
    } catch (error) {
      if (error instanceof BadPacket) return; // If it had a number, the next number shows the gap.
      throw error;
    }
    const { stanzaId, conversationId, said } = envelope;
    if (stanzaId === 0) this.#handleUnnumbered(conversationId, said);
    if (stanzaId >= 0 || !this.#greeted || conversationId !== this.#conversationId) return;
    const number = -stanzaId;
    this.#settle(said);
    if (number <= this.#seen) return;
    if (number > this.#seen + 1 && !this.#acceptsGap(number)) return this.#lose();
    this.#seen = number;
    this.#remember({ from: "server", number, said });
  }

  /** The first time after a gap: false, to ask again. The second time: report the gap and continue. */
  #acceptsGap(number: number): boolean {
    const again = this.#gapAfter === this.#seen;
    this.#gapAfter = this.#seen;
    if (again) this.#tell({ kind: "missing", from: this.#seen + 1, to: number - 1 });
    return again;
  }

  /** Handle a stanza 0, which belongs to this connection only. */
  #handleUnnumbered(conversationId: string, said: Said | null): void {
    if (said?.name === "Configuration" && !this.#greeted) this.#begin(conversationId, said.body);
    else if (said?.name === "ErrorMessage") this.#refuse(said.body);
    else if (said?.name === "AssistantSentence") this.#tell({ kind: "urgent", text: said.body.text });
    else if (said?.name === "ServerInfo") this.#tell({ kind: "server", info: said.body });
    else this.#settle(said);
  }

  #begin(conversationId: string, { lastClientStanza = 0 }: Body<"Configuration">): void {
    if (!this.#conversationId) this.#options.memory.begin(conversationId);
    this.#conversationId = this.#wanted = conversationId;
    this.#count = Math.max(this.#count, lastClientStanza);
    this.#greeted = true;
    clearTimeout(this.#timers.silence);
    this.#timers = { stable: setTimeout(() => (this.#attempts = 0), SILENCE_MS) };
    this.#connection = { state: "open" };
    this.#tell({ kind: "connection", connection: this.#connection });
    for (const entry of [...this.#waiting]) this.#post(entry);
  }

  #refuse(error: Body<"ErrorMessage">): void {
    const temporary = error.code === CODE.busy || error.code > CODE.server;
    if (error.code === CODE.invalidState && !error.recoverable) return this.#hangUp({ state: "elsewhere" });
    if (!this.#greeted) return temporary ? this.#lose() : this.#hangUp({ state: "refused", error });
    // The server answers frames in order, so an error without an id is about the oldest.
    const refused = error.originatingId ? this.#byId(error.originatingId) : this.#waiting[0];
    if (!refused) this.#tell({ kind: "error", error });
    else if (temporary && this.#maySendAgain(refused)) this.#lose();
    else if (error.code === CODE.outOfOrder && !this.#renumbered.has(refused.key)) this.#renumber(refused);
    else this.#decide(refused, { state: "refused", code: error.code, message: error.message });
  }

  /** Limit the attempts, because a temporary error may be permanent for this message. */
  #maySendAgain({ key }: ClientEntry): boolean {
    const tries = (this.#tries.get(key) ?? 0) + 1;
    this.#tries.set(key, tries);
    return tries < MAX_TRIES;
  }

  /** Another tab has used this number. The message keeps its id, so the server still stores it once. */
  #renumber(entry: ClientEntry): void {
    this.#renumbered.add(entry.key);
    const renumbered = { ...entry, number: ++this.#count };
    this.#waiting = this.#waiting.map((one) => (one === entry ? renumbered : one));
    this.#remember(renumbered);
    this.#post(renumbered);
  }

  /** If this answers a message of ours, stop sending that message. */
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
    clearTimeout(this.#timers.silence);
    delete this.#timers.silence;
    this.#attempts = 0;
    if (this.#waiting.length > 0) this.#limitSilence();
    this.#remember({ ...entry, fate });
  }

  #remember(entry: Entry): void {
    const kept = this.#options.memory.keep(this.#conversationId, entry);
    if (!kept && this.#hasRoom) this.#tell({ kind: "unremembered" });
    this.#hasRoom = kept;
    this.#tell({ kind: "entry", entry });
  }

  #tell(event: ClientEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}

/** No conversation is wanted. */
class Idle extends Error {}

/** Another tab has signed somebody else in. */
class Displaced extends Error {}

type Timer = ReturnType<typeof setTimeout>;
