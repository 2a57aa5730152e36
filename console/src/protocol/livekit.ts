/**
 * The LiveKit room of a conversation behind the same seam as the WebSocket. The library is loaded when it is first used.
 *
 *     const client = new Client({ dial: dialLiveKit("", () => client.conversationId), memory: new PassingMemory() });
 *
 * Each dial comes into the room with a token of its own, which makes it a connection of its own: whatever ends it — the
 * room, the server, or a reconnect of LiveKit in which something may have been lost — the client dials again and asks
 * for what it missed. Frames are sent as byte streams, since LiveKit names the sender of those at once.
 */

import type { RemoteParticipant } from "livekit-client";

import { NotAuthenticated, Refused, type Dial } from "./socket.ts";

/** How long the server may take to come into the room. */
const PATIENCE_MS = 10_000;

/** The server in every room: its identity, the topic of its frames, and that of the packet which ends a connection. */
const [HOUSE, TOPIC, GOODBYE] = ["anamnesis", "anamnesis", "anamnesis.goodbye"];

interface Admission {
  readonly url: string;
  readonly token: string;
}

interface Problem {
  readonly code: number;
  readonly detail: string;
  readonly recoverable: boolean;
}

/** Dial the room of the conversation that `conversationId` gives, or of a new one if it gives none. */
export function dialLiveKit(server: string, conversationId: () => string, headers: HeadersInit = {}): Dial {
  let begun = "";

  async function post<T>(path: string): Promise<T> {
    const response = await fetch(server + path, { method: "POST", headers });
    if (response.status === 401 || response.status === 403) throw new NotAuthenticated();
    if (!response.ok) throw refusal(response.status, await response.json().catch(() => null));
    return (await response.json()) as T;
  }

  return async (events) => {
    const { Room, RoomEvent } = await import("livekit-client");
    const id = conversationId() || (begun ||= (await post<{ id: string }>("/v1/conversations")).id);
    const { url, token } = await post<Admission>(`/v1/conversations/${id}/token`);
    const room = new Room();
    let [order, sending, ended] = [Promise.resolve(), Promise.resolve(), false];

    const end = () => {
      if (ended) return;
      ended = true;
      void room.disconnect();
      events.closed();
    };
    /** Streams end in any order; each frame has its place from the moment it begins. */
    const take = (frame: Promise<Uint8Array>) => {
      begun = "";
      const deliver = async () => events.packet(await frame);
      order = order.then(() => (ended ? undefined : deliver())).catch(() => {}); // One cut off is missed by its number.
    };

    const houseIsThere = new Promise<void>((resolve, reject) => {
      let greeted = false;
      setTimeout(() => !greeted && end(), PATIENCE_MS);
      const greet = () => {
        greeted = true;
        resolve();
      };
      room
        .on(RoomEvent.DataReceived, (packet, sender, _, topic) => {
          if (!isHouse(sender, room.remoteParticipants.has(HOUSE))) return;
          if (topic === TOPIC) take(Promise.resolve(packet));
          else if (topic === GOODBYE) greeted ? end() : greet();
        })
        .on(RoomEvent.ParticipantConnected, (participant) => participant.identity === HOUSE && greet())
        .on(RoomEvent.ParticipantDisconnected, (participant) => participant.identity === HOUSE && greeted && end())
        .on(RoomEvent.Reconnecting, end) // coming in again is no slower than what LiveKit does then
        .on(RoomEvent.Reconnected, end)
        .on(RoomEvent.Connected, () => room.remoteParticipants.has(HOUSE) && greet())
        .on(RoomEvent.Disconnected, () => {
          reject(new Error("the server did not come, or the room is gone"));
          end();
        });
    });
    houseIsThere.catch(() => {}); // whoever waits for it hears of it, too
    room.registerByteStreamHandler(TOPIC, (reader, { identity }) => {
      if (identity === HOUSE) take(reader.readAll().then(joined));
    });
    await room.connect(url, token, { autoSubscribe: false });
    await houseIsThere;
    return {
      send: (packet) => {
        const options = { topic: TOPIC, destinationIdentities: [HOUSE], compress: false };
        sending = sending.then(async () => void (await room.localParticipant.sendBytes(packet, options))).catch(end);
      },
      close: end,
    };
  };
}

/** Why the server does not let us in, if it says so and says that this will not pass; else an error that may. */
function refusal(status: number, problem: Problem | null): Error {
  if (!problem?.detail || (problem.recoverable && (status === 429 || status >= 500)))
    return new Error(`the server answered ${status}`);
  const { code, detail: message } = problem;
  return new Refused({ id: "", code, message, severity: 2, recoverable: false });
}

/** A packet has no sender until LiveKit has told us who is there; from then on, one without is not the server's. */
function isHouse(sender: RemoteParticipant | undefined, isKnown: boolean): boolean {
  return sender === undefined ? !isKnown : sender.identity === HOUSE;
}

function joined(chunks: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.length, 0));
  chunks.reduce((at, chunk) => (whole.set(chunk, at), at + chunk.length), 0);
  return whole;
}
