/** Envelopes to bytes and back: one MessagePack map per packet. */

import { decode as unpack, encode as pack } from "@msgpack/msgpack";
import { MESSAGES, isMap, understand, type Name, type Said } from "./messages.ts";

/** A message in its envelope. The client counts 1, 2, 3 …; the server −1, −2, −3 …; 0 belongs to one connection. */
export interface Envelope {
  readonly stanzaId: number;
  readonly conversationId: string;
  /** Null when the type is unknown or the body is not as it should be: it counts, and is skipped. */
  readonly said: Said | null;
}

/** A packet that holds no envelope at all. */
export class BadPacket extends Error {}

/** The bytes of one message; its body repeats the conversation. */
export function encode<N extends Name>(stanzaId: number, conversationId: string, { name, body }: Said<N>): Uint8Array {
  const { type } = MESSAGES[name];
  return pack({ stanzaId, conversationId, type, body: { ...body, conversationId } }, { ignoreUndefined: true });
}

/** The envelope in a packet; throws `BadPacket` when there is none. */
export function decode(packet: Uint8Array): Envelope {
  let map: unknown;
  try {
    map = unpack(packet);
  } catch {
    throw new BadPacket("not one MessagePack map");
  }
  if (!isMap(map)) throw new BadPacket("not a map");
  const { stanzaId, conversationId = "", type, body, meta } = map;
  if (!Number.isInteger(stanzaId) || typeof conversationId !== "string") throw new BadPacket("not an envelope");
  const said = typeof type === "number" && isMap(body) ? understand(type, { ...body, ...safetyIn(meta), ...troubleIn(meta) }) : null;
  return { stanzaId: stanzaId as number, conversationId, said };
}

/** What the meta of a sentence or an answer says of danger, as a StartAnswer's body says it. */
function safetyIn(meta: unknown): object {
  return isMap(meta) && typeof meta["safety"] === "string" ? { safety: { kind: meta["safety"], tier: meta["tier"] } } : {};
}

/** What it says of a model that should have answered and did not: why the local brain stood in for it. */
function troubleIn(meta: unknown): object {
  return isMap(meta) && typeof meta["model.stood_in"] === "string" ? { trouble: String(meta["model.trouble"] ?? "") } : {};
}
