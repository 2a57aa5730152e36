/** The conversation as a page sees it: one value that changes, and what a person can do. */

import { newId, type Client, type ClientEvent, type Connection, type Entry } from "../protocol/index.ts";
import { fold, isAwaited, type Exchange, type Transcript } from "./transcript.ts";

/** Everything a page shows. A new value for every change, equal parts kept. */
export interface View {
  readonly transcript: Transcript;
  readonly connection: Connection;
  readonly notices: readonly Notice[];
  /** False until the server has opened a conversation. */
  readonly ready: boolean;
}

/** Something to be read and put away. */
export interface Notice {
  readonly id: number;
  readonly text: string;
}

/** Turns what a client tells into a `View`, for `useSyncExternalStore` or anything like it. */
export class Chat {
  readonly #client: Client;
  readonly #watchers = new Set<() => void>();
  #notices = 0;
  #view: View = { transcript: [], connection: { state: "closed" }, notices: [], ready: false };

  constructor(client: Client) {
    this.#client = client;
    client.listen((event) => this.#show({ ...this.#after(event), ready: client.conversationId !== "" }));
  }

  /** The view as it is now. */
  view = (): View => this.#view;

  /** Be called after each change; gives the way to stop that. */
  watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  };

  /** Say something. What no protocol can carry (NUL, halves of characters) is left out. */
  say(text: string): void {
    const content = text.toWellFormed().replaceAll("\0", "").trim();
    if (content) this.#client.send({ name: "UserMessage", body: { id: newId("msg"), content } });
  }

  /** Stop the answer that is under way. */
  stop(): void {
    const exchange = this.#view.transcript.find(isAwaited);
    if (!exchange) return;
    const targetId = exchange.answers.at(-1)?.id ?? exchange.id;
    this.#client.send({ name: "ControlStop", body: { targetId, stopType: "generation" } });
  }

  /** Ask once more for an answer that failed. */
  askAgain({ failed }: Exchange): void {
    this.#client.send({ name: "ControlVariation", body: { targetId: failed, mode: "regenerate" } });
  }

  startOver(): void {
    this.#show({ notices: [] });
    this.#client.startOver();
  }

  /** Take the conversation back from another tab, or try again. */
  reopen(): void {
    this.#client.open();
  }

  putAway(notice: Notice): void {
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
      case "error":
        return this.#notice(event.error.message);
      case "urgent":
        return this.#notice(event.text);
      case "missing":
        return this.#notice("A part of this conversation could not be fetched from the server.");
      case "unremembered":
        return this.#notice("This browser has no room to keep more. After a reload the newest messages may be missing.");
      case "server":
        return {};
    }
  }

  /** A message that is refused says so where it stands; anything else has no place of its own. */
  #noticeOf(entry: Entry): Partial<View> {
    if (entry.from === "server" || entry.said.name === "UserMessage" || entry.fate.state !== "refused") return {};
    return this.#notice(entry.fate.message);
  }

  #notice(text: string): Partial<View> {
    return { notices: [...this.#view.notices, { id: ++this.#notices, text }] };
  }

  #show(changes: Partial<View>): void {
    this.#view = { ...this.#view, ...changes };
    for (const watcher of this.#watchers) watcher();
  }
}
