/** Makes unique ids: a prefix and 21 random URL-safe characters. */

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** A new id such as `msg_V1StGXR8_Z5jdHi6B-myT`. */
export function newId(prefix: "msg" | "note" | "mem"): string {
  const random = crypto.getRandomValues(new Uint8Array(21));
  return `${prefix}_${Array.from(random, (byte) => ALPHABET[byte % ALPHABET.length]).join("")}`;
}
