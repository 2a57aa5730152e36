/** The state of the page as one value that changes, and the actions of the person. */

import { newId, type Client, type ClientEvent, type Connection, type Entry } from "../protocol/index.ts";
import { fold, isAwaited, type Exchange, type Transcript } from "./transcript.ts";

/** Everything the page shows. Each change makes a new value; unchanged parts stay the same objects. */
export interface View {
  readonly transcript: Transcript;
  readonly connection: Connection;
  readonly notices: readonly Notice[];
  /** False until the server has opened a conversation. */
  readonly ready: boolean;
  /** Who is signed in; null for nobody. */
  readonly person: string | null;
  /** Empty until the server has opened a conversation. */
  readonly conversationId: string;
  /** What the server says about the model that answers; empty if there is nothing to say. */
  readonly model: string;
}

/** A message that the person reads and dismisses. */
export interface Notice {
  readonly id: number;
  readonly text: string;
}

/** Turns the events of a client into a `View`, for `useSyncExternalStore`. */
export class Chat {
  readonly #client: Client;
  readonly #endSession: () => Promise<void>;
  readonly #watchers = new Set<() => void>();
  #notices = 0;
  #view: View = { transcript: [], connection: { state: "closed" }, notices: [], ready: false, person: null, conversationId: "", model: "" };

  constructor(client: Client, endSession: () => Promise<void>) {
    this.#client = client;
    this.#endSession = endSession;
    client.listen((event) => this.#show({ ...this.#after(event), ...this.#opened() }));
  }

  /** The current view. */
  view = (): View => this.#view;

  /** Call `watcher` after each change; returns a function that stops it. */
  watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  };

  /** Send a message, without the characters that the protocol cannot carry (NUL, lone surrogates). */
  say(text: string): void {
    const content = sendable(text);
    if (content) this.#client.send({ name: "UserMessage", body: { id: newId("msg"), content } });
  }

  /** Stop the running answer. */
  stop(): void {
    const exchange = this.#view.transcript.find(isAwaited);
    if (!exchange) return;
    const targetId = exchange.answers.at(-1)?.id ?? exchange.id;
    this.#client.send({ name: "ControlStop", body: { targetId, stopType: "generation" } });
  }

  /** Ask again for an answer that failed. */
  askAgain({ failed }: Exchange): void {
    this.regenerate(failed);
  }

  /** Ask for another answer. `targetId` is an answer or its message, of the latest turn. */
  regenerate(targetId: string): void {
    this.#client.send({ name: "ControlVariation", body: { targetId, mode: "regenerate" } });
  }

  /** Correct the latest message, which is then answered again. */
  edit(targetId: string, text: string): void {
    const newContent = sendable(text);
    if (newContent) this.#client.send({ name: "ControlVariation", body: { targetId, mode: "edit", newContent } });
  }

  /** Keep a note about a message or an answer. */
  note(messageId: string, text: string): void {
    const content = sendable(text);
    if (content) this.#client.send({ name: "UserNote", body: { id: newId("note"), messageId, content, action: "create" } });
  }

  /** Open a conversation: the one with this id; without an id the current or stored one, or a new one. */
  open(conversationId?: string): void {
    this.#show({ notices: [] });
    this.#client.open(conversationId);
  }

  /** Find out who is signed in, without opening a conversation. */
  recognize(): void {
    this.#client.recognize();
  }

  /** Ask again who is signed in, because the server has refused a request. */
  identifyAgain(): void {
    this.#client.identifyAgain();
  }

  /** Sign out: show and store nothing of the conversation any more, and end the session on the server. */
  async signOut(): Promise<void> {
    this.#client.close();
    this.#show({ transcript: [], notices: [] });
    const ended = await this.#endSession().then(() => true, () => false);
    this.#client.forget();
    if (!ended) this.#show(this.#notice("The server did not answer, so you may still be signed in. Reload the page and sign out again."));
  }

  startOver(): void {
    this.#show({ notices: [] });
    this.#client.startOver();
  }

  /** Take the conversation back from another tab, or try again. */
  reopen(): void {
    this.#client.open();
  }

  dismiss(notice: Notice): void {
    this.#show({ notices: this.#view.notices.filter(({ id }) => id !== notice.id) });
  }

  #after(event: ClientEvent): Partial<View> {
    const { transcript } = this.#view;
    switch (event.kind) {
      case "entries":
        return { transcript: event.entries.reduce(fold, []) };
      case "entry":
        return { transcript: fold(transcript, event.entry), ...this.#noticeOf(event.entry) };
      case "connection":
        return { connection: event.connection };
      case "person":
        return { person: event.person, notices: [] };
      case "error":
        return this.#notice(event.error.message);
      case "urgent":
        return this.#notice(event.text);
      case "missing":
        return this.#notice("The server did not send a part of this conversation.");
      case "unremembered":
        return this.#notice("This browser's storage is full. After a reload, the newest messages may be missing.");
      case "server":
        return { model: event.info.notice ?? "" };
    }
  }

  /** A refused message shows the reason itself; other refused frames need a notice. */
  #noticeOf(entry: Entry): Partial<View> {
    if (entry.from === "server" || entry.said.name === "UserMessage" || entry.fate.state !== "refused") return {};
    return this.#notice(entry.fate.message);
  }

  #opened(): Partial<View> {
    const { conversationId } = this.#client;
    return { conversationId, ready: conversationId !== "" };
  }

  #notice(text: string): Partial<View> {
    return { notices: [...this.#view.notices, { id: ++this.#notices, text }] };
  }

  #show(changes: Partial<View>): void {
    this.#view = { ...this.#view, ...changes };
    for (const watcher of this.#watchers) watcher();
  }
}

function sendable(text: string): string {
  return text.toWellFormed().replaceAll("\0", "").trim();
}
