/** The reference client of the protocol, for this page and for other frontends. */

export { Client, type ClientEvent, type ClientOptions, type Connection } from "./client.ts";
export { newId } from "./ids.ts";
export { dialLiveKit } from "./livekit.ts";
export { PERSON_KEY, PassingMemory, StorageMemory, type ClientEntry, type Entry, type Fate, type Memory, type Remembered } from "./memory.ts";
export type { Body, ClientName, Name, Said } from "./messages.ts";
export { NotAuthenticated, Refused, dialWebSocket, type Dial, type Socket, type SocketEvents } from "./socket.ts";
