/** Encodes and decodes envelopes: one MessagePack map per packet. */

import { decode as unpack, encode as pack } from "@msgpack/msgpack";
import { MESSAGES, isMap, parseMessage, type Name, type Said } from "./messages.ts";

/** A message with its number. The client counts 1, 2, 3 …; the server −1, −2, −3 …; 0 belongs to one connection. */
export interface Envelope {
  readonly stanzaId: number;
  readonly conversationId: string;
  /** Null if the type is unknown or the body is invalid. Its number still counts. */
  readonly said: Said | null;
}

/** The packet is not an envelope. */
export class BadPacket extends Error {}

/** Encode one message. Its body repeats the conversation's id. */
export function encode<N extends Name>(stanzaId: number, conversationId: string, { name, body }: Said<N>): Uint8Array {
  const { type } = MESSAGES[name];
  return pack({ stanzaId, conversationId, type, body: { ...body, conversationId } }, { ignoreUndefined: true });
}

/** Decode a packet; throws `BadPacket` if it is not an envelope. */
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
  const said = typeof type === "number" && isMap(body) ? parseMessage(type, { ...body, ...safetyIn(meta), ...troubleIn(meta) }) : null;
  return { stanzaId: stanzaId as number, conversationId, said };
}

/** The danger named in the meta of a sentence or an answer, in the form of StartAnswer's `safety`. */
function safetyIn(meta: unknown): object {
  if (!isMap(meta) || typeof meta["safety"] !== "string") return {};
  return { safety: { kind: meta["safety"], tier: meta["tier"], certainty: meta["certainty"] } };
}

/** Why the model failed, if the local brain answered in its place. */
function troubleIn(meta: unknown): object {
  return isMap(meta) && typeof meta["model.stood_in"] === "string" ? { trouble: String(meta["model.trouble"] ?? "") } : {};
}
