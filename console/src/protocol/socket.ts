/** How packets are carried: the interface, and its implementation with a WebSocket. */

import type { Body } from "./messages.ts";

/** Carries packets to the server, complete and in order. */
export interface Socket {
  send(packet: Uint8Array): void;
  close(): void;
}

/** What a socket reports. `closed` is called once, also after our own `close`. */
export interface SocketEvents {
  packet(packet: Uint8Array): void;
  closed(): void;
}

/** Opens a connection. Rejects with `NotAuthenticated` or `Refused` if a retry cannot help, else with any other error. */
export type Dial = (events: SocketEvents) => Promise<Socket>;

/** Nobody is signed in. */
export class NotAuthenticated extends Error {}

/** The server refuses the connection for good, and says why. */
export class Refused extends Error {
  readonly error: Body<"ErrorMessage">;

  constructor(error: Body<"ErrorMessage">) {
    super(error.message);
    this.error = error;
  }
}

/** Connect by a WebSocket: binary frames, one envelope each. */
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
