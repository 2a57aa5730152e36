/** A server whose every frame is written by the test. */

import { encode as pack, decode as unpack } from "@msgpack/msgpack";
import { Client, PassingMemory, type ClientEvent, type Connection, type Memory, type Socket, type SocketEvents } from "../src/protocol/index.ts";
import { MESSAGES, type Body, type Name } from "../src/protocol/messages.ts";

export interface Heard {
  stanzaId: number;
  conversationId: string;
  type: number;
  body: Record<string, unknown>;
}

/** One connection as the server sees it. */
export class Line implements Socket {
  readonly heard: Heard[] = [];
  closed = false;
  readonly #events: SocketEvents;

  constructor(events: SocketEvents) {
    this.#events = events;
  }

  send(packet: Uint8Array): void {
    this.heard.push(unpack(packet) as Heard);
  }

  close(): void {
    this.closed = true;
  }

  say<N extends Name>(stanzaId: number, name: N, body: Body<N>, conversationId = "conv_1"): void {
    this.raw(pack({ stanzaId, conversationId, type: MESSAGES[name].type, body: { ...body, conversationId } }));
  }

  raw(packet: Uint8Array): void {
    this.#events.packet(packet);
  }

  /** The server's part of the handshake. */
  welcome(lastClientStanza = 1, lastServerStanza = 0): void {
    this.say(0, "Configuration", { lastClientStanza, lastServerStanza });
    this.say(0, "Acknowledgement", { acknowledgedStanzaId: this.heard[0]?.stanzaId ?? 0, success: true });
  }

  acknowledge(stanzaId: number, acknowledgedStanzaId: number, success = true): void {
    this.say(stanzaId, "Acknowledgement", { acknowledgedStanzaId, success });
  }

  sentence(number: number, text: string, isFinal = false): void {
    this.say(-number, "AssistantSentence", { id: `sent_${number}`, previousId: "msg_a", sequence: number, text, isFinal });
  }

  refuse(code: number, { recoverable = true, originatingId }: { recoverable?: boolean; originatingId?: string } = {}): void {
    const named = originatingId === undefined ? {} : { originatingId };
    this.say(0, "ErrorMessage", { id: "err_1", code, message: "No.", severity: 2, recoverable, ...named });
  }

  drop(): void {
    this.#events.closed();
  }
}

/** A client and its scripted server, without a real clock and without randomness. */
export class Scene {
  readonly lines: Line[] = [];
  readonly events: ClientEvent[] = [];
  readonly client: Client;
  failing: Error | null = null;
  /** What the server answers when it is asked who is signed in. */
  person: string | Error = "anna";

  constructor(memory: Memory = new PassingMemory(), { signsIn = false } = {}) {
    const dial = async (events: SocketEvents): Promise<Socket> => {
      if (this.failing) throw this.failing;
      const line = new Line(events);
      this.lines.push(line);
      return line;
    };
    const identify = async (): Promise<string> => {
      if (this.person instanceof Error) throw this.person;
      return this.person;
    };
    const options = { dial, memory, configuration: { device: "test" }, random: () => 1 };
    this.client = new Client(signsIn ? { ...options, identify } : options);
    this.client.listen((event) => this.events.push(event));
  }

  get line(): Line {
    const line = this.lines.at(-1);
    if (!line) throw new Error("the client has not connected yet");
    return line;
  }

  /** The sentences that a page would show. */
  get sentences(): string[] {
    const entries = this.events.flatMap((event) => {
      if (event.kind === "entries") return event.entries;
      return event.kind === "entry" ? [event.entry] : [];
    });
    return entries.flatMap(({ said }) => (said?.name === "AssistantSentence" ? [said.body.text] : []));
  }

  get states(): Connection["state"][] {
    return this.events.flatMap((event) => (event.kind === "connection" ? [event.connection.state] : []));
  }
}
