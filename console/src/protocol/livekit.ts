/**
 * Connects through the LiveKit room of a conversation. The library is loaded when it is first used.
 *
 *     const client = new Client({ dial: dialLiveKit("", () => client.conversationId), memory: new PassingMemory() });
 *
 * Each call joins the room with a new token, and so with a new identity. When anything ends the connection (the room, the
 * server, or a reconnect of LiveKit that may have lost frames), the client connects again and asks for what it missed.
 * Frames are sent as byte streams, because LiveKit names the sender of a stream at once.
 */

import type { RemoteParticipant } from "livekit-client";

import { NotAuthenticated, Refused, type Dial } from "./socket.ts";

/** How long the server may take to join the room. */
const JOIN_MS = 10_000;

/** The identity of the server in every room, the topic of its frames, and the topic of the packet that ends a connection. */
const [SERVER, TOPIC, GOODBYE] = ["anamnesis", "anamnesis", "anamnesis.goodbye"];

interface Admission {
  readonly url: string;
  readonly token: string;
}

interface Problem {
  readonly code: number;
  readonly detail: string;
  readonly recoverable: boolean;
}

/** Connect through the room of the conversation that `conversationId` returns, or of a new one if it returns none. */
export function dialLiveKit(server: string, conversationId: () => string, headers: HeadersInit = {}): Dial {
  let started = ""; // a conversation that was created, and whose room was not joined yet

  async function post<T>(path: string): Promise<T> {
    const response = await fetch(server + path, { method: "POST", headers });
    if (!response.ok) started = "";
    if (response.status === 401 || response.status === 403) throw new NotAuthenticated();
    if (!response.ok) throw refusal(response.status, await response.json().catch(() => null));
    return (await response.json()) as T;
  }

  return async (events) => {
    const { Room, RoomEvent } = await import("livekit-client");
    const id = conversationId() || (started ||= (await post<{ id: string }>("/v1/conversations")).id);
    const { url, token } = await post<Admission>(`/v1/conversations/${id}/token`);
    const room = new Room();
    let [order, sending, ended] = [Promise.resolve(), Promise.resolve(), false];

    const end = () => {
      if (ended) return;
      ended = true;
      void room.disconnect();
      events.closed();
    };
    /** Streams may end in any order; the order of the frames is that in which they began. */
    const take = (frame: Promise<Uint8Array>) => {
      started = "";
      const deliver = async () => events.packet(await frame);
      order = order.then(() => (ended ? undefined : deliver())).catch(() => {}); // The next number shows that a broken one is missing.
    };

    const serverJoined = new Promise<void>((resolve, reject) => {
      let hasJoined = false;
      setTimeout(() => !hasJoined && end(), JOIN_MS);
      const joined = () => {
        hasJoined = true;
        resolve();
      };
      room
        .on(RoomEvent.DataReceived, (packet, sender, _, topic) => {
          if (!isServer(sender, room.remoteParticipants.has(SERVER))) return;
          if (topic === TOPIC) take(Promise.resolve(packet));
          else if (topic === GOODBYE) hasJoined ? end() : joined();
        })
        .on(RoomEvent.ParticipantConnected, (participant) => participant.identity === SERVER && joined())
        .on(RoomEvent.ParticipantDisconnected, (participant) => participant.identity === SERVER && hasJoined && end())
        .on(RoomEvent.Reconnecting, end) // joining again is as fast as a reconnect of LiveKit
        .on(RoomEvent.Reconnected, end)
        .on(RoomEvent.Connected, () => room.remoteParticipants.has(SERVER) && joined())
        .on(RoomEvent.Disconnected, () => {
          reject(new Error("the server did not come, or the room is gone"));
          end();
        });
    });
    serverJoined.catch(() => {}); // it is awaited below, too
    room.registerByteStreamHandler(TOPIC, (reader, { identity }) => {
      if (identity === SERVER) take(reader.readAll().then(concatenate));
    });
    await room.connect(url, token, { autoSubscribe: false });
    await serverJoined;
    return {
      send: (packet) => {
        const options = { topic: TOPIC, destinationIdentities: [SERVER], compress: false };
        sending = sending.then(async () => void (await room.localParticipant.sendBytes(packet, options))).catch(end);
      },
      close: end,
    };
  };
}

/** `Refused` if the server says that a retry cannot help; any other error if it can. */
function refusal(status: number, problem: Problem | null): Error {
  if (!problem?.detail || (problem.recoverable && (status === 429 || status >= 500)))
    return new Error(`the server answered ${status}`);
  const { code, detail: message } = problem;
  return new Refused({ id: "", code, message, severity: 2, recoverable: false });
}

/** A packet has no sender until LiveKit has listed the participants; after that, one without a sender is foreign. */
function isServer(sender: RemoteParticipant | undefined, isKnown: boolean): boolean {
  return sender === undefined ? !isKnown : sender.identity === SERVER;
}

function concatenate(chunks: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.length, 0));
  chunks.reduce((at, chunk) => (whole.set(chunk, at), at + chunk.length), 0);
  return whole;
}
