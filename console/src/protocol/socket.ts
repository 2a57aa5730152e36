/** The seam through which packets travel, and the WebSocket behind it. */

import type { Body } from "./messages.ts";

/** Carries packets to the server, whole and in order. */
export interface Socket {
  send(packet: Uint8Array): void;
  close(): void;
}

/** What a socket tells. `closed` comes once, also after our own `close`. */
export interface SocketEvents {
  packet(packet: Uint8Array): void;
  closed(): void;
}

/** Opens a connection. Rejects with `NotAuthenticated` or `Refused` if trying again would not help, else with any error. */
export type Dial = (events: SocketEvents) => Promise<Socket>;

/** The server does not know who is asking. */
export class NotAuthenticated extends Error {}

/** The server says why there is no connection, and that there will be none. */
export class Refused extends Error {
  readonly error: Body<"ErrorMessage">;

  constructor(error: Body<"ErrorMessage">) {
    super(error.message);
    this.error = error;
  }
}

/** Dial a WebSocket; binary frames, one envelope each. */
export function dialWebSocket(address: string): Dial {
  return (events) =>
    new Promise((resolve, reject) => {
      const socket = new WebSocket(address);
      socket.binaryType = "arraybuffer";
      socket.onopen = () => resolve({ send: (packet) => socket.send(packet as BufferSource), close: () => socket.close() });
      socket.onmessage = ({ data }) => {
        if (data instanceof ArrayBuffer) events.packet(new Uint8Array(data));
      };
      socket.onclose = () => {
        reject(new Error("the connection could not be opened"));
        events.closed();
      };
    });
}
