import { encode as pack } from "@msgpack/msgpack";
import { describe, expect, test } from "vitest";
import { BadPacket, decode, encode } from "../src/protocol/codec.ts";
import { newId } from "../src/protocol/index.ts";

const packed = (type: number, body: unknown, stanzaId: unknown = -1) =>
  pack({ stanzaId, conversationId: "conv_1", type, body });

describe("an envelope", () => {
  test("comes back from its bytes", () => {
    const said = { name: "UserMessage", body: { id: "msg_1", content: "Grüße 👋" } } as const;

    const back = decode(encode(5, "conv_1", said));

    expect(back).toEqual({
      stanzaId: 5,
      conversationId: "conv_1",
      said: { name: "UserMessage", body: { ...said.body, conversationId: "conv_1" } },
    });
  });

  test("has the bytes the protocol says", () => {
    const bytes = encode(2, "c", { name: "ControlStop", body: { targetId: "msg_a" } });

    expect(String.fromCharCode(...bytes)).toBe(
      "\x84\xa8stanzaId\x02\xaeconversationId\xa1c\xa4type\x0a\xa4body\x82\xa8targetId\xa5msg_a\xaeconversationId\xa1c",
    );
  });

  test.each([
    ["no MessagePack", new Uint8Array([0xc1])],
    ["two values", new Uint8Array([0x80, 0x80])],
    ["no map", pack([1])],
    ["no number", packed(16, {}, "1")],
  ])("with %s is a bad packet", (_, packet) => {
    expect(() => decode(packet)).toThrow(BadPacket);
  });

  test.each([
    ["an unknown type", packed(99, {})],
    ["a missing field", packed(16, { id: "s", previousId: "m", sequence: 1, isFinal: true })],
    ["a wrong type", packed(16, { id: "s", previousId: "m", sequence: "1", text: "", isFinal: true })],
    ["a trace whose two names differ", packed(14, { ...aTrace(), previousId: "a", messageId: "b" })],
  ])("with %s keeps its number and says nothing", (_, packet) => {
    expect(decode(packet)).toEqual({ stanzaId: -1, conversationId: "conv_1", said: null });
  });

  test("says in its meta that a sentence is about danger", () => {
    const body = { id: "s", previousId: "m", sequence: 1, text: "Call.", isFinal: false };

    const { said } = decode(pack({ stanzaId: -1, conversationId: "c", type: 16, body, meta: { safety: "crisis", tier: 2, certainty: "possible" } }));

    expect(said?.body).toMatchObject({ ...body, safety: { kind: "crisis", tier: 2, certainty: "possible" } });
  });

  test("says in its meta that the model did not answer, and why", () => {
    const body = { id: "s", previousId: "m", sequence: 1, text: "Rest.", isFinal: true };
    const meta = { "model.asked": 1, "model.stood_in": "local", "model.trouble": "http_503" };

    const { said } = decode(pack({ stanzaId: -1, conversationId: "c", type: 16, body, meta }));

    expect(said?.body).toMatchObject({ ...body, trouble: "http_503" });
  });

  test("may hold nothing where a field is optional, and fields from the future", () => {
    const { said } = decode(packed(13, { id: "msg_a", previousId: "msg_1", safety: null, mood: "new" }));

    expect(said).toEqual({ name: "StartAnswer", body: { id: "msg_a", previousId: "msg_1", mood: "new" } });
  });

  test.each([
    [14, { ...aTrace(), messageId: "msg_1", relevance: 0.5 }, { previousId: "msg_1", confidence: 0.5 }],
    [16, { id: "s", previousId: "m", sequence: 1, text: "", final: true }, { isFinal: true }],
    [10, { format: "pcm", duration: 20 }, { durationMs: 20 }],
    [4, { format: "pcm", durationMs: 20 }, { duration: 20 }],
  ])("of type %i is understood by either of two names", (type, body, expected) => {
    expect(decode(packed(type, body)).said?.body).toMatchObject(expected);
  });

  test("of type 10 is a stop unless it has sound in it", () => {
    expect(decode(packed(10, { targetId: "msg_a" })).said?.name).toBe("ControlStop");
    expect(decode(packed(10, { format: "pcm", durationMs: 20 })).said?.name).toBe("AudioChunk");
  });
});

test("ids are 21 URL-safe characters behind their prefix, each new", () => {
  const ids = Array.from({ length: 1000 }, () => newId("msg"));

  expect(ids.every((id) => /^msg_[\w-]{21}$/.test(id))).toBe(true);
  expect(new Set(ids).size).toBe(1000);
});

function aTrace() {
  return { id: "trace_1", memoryId: "mem_1", action: "retrieved", content: "…" };
}
