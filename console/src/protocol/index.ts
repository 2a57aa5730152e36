/** The reference client of the protocol, for pages and for whoever writes another frontend. */

export { Client, type ClientEvent, type ClientOptions, type Connection } from "./client.ts";
export { newId } from "./ids.ts";
export { dialLiveKit } from "./livekit.ts";
export { PassingMemory, StorageMemory, type ClientEntry, type Entry, type Fate, type Memory } from "./memory.ts";
export type { Body, ClientName, Name, Said } from "./messages.ts";
export { NotAuthenticated, Refused, dialWebSocket, type Dial, type Socket, type SocketEvents } from "./socket.ts";
