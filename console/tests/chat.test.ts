import { describe, expect, test, vi } from "vitest";
import { Chat } from "../src/chat/chat.ts";
import { Scene } from "./scripted.ts";

/** A chat in which Anna has said something. */
async function annasChat(endSession: () => Promise<void>): Promise<{ chat: Chat; scene: Scene }> {
  const scene = new Scene(undefined, { signsIn: true });
  const chat = new Chat(scene.client, endSession);
  scene.client.open();
  await vi.waitFor(() => scene.line.heard[0]);
  scene.line.welcome();
  chat.say("I am having a headache");
  return { chat, scene };
}

describe("signing out", () => {
  test("removes the conversation from the page before the server has answered", async () => {
    let answer = () => {};
    const { chat, scene } = await annasChat(() => new Promise((resolve) => void (answer = resolve)));
    expect(chat.view()).toMatchObject({ person: "anna", transcript: [{}] });

    const done = chat.signOut();
    expect(chat.view().transcript).toEqual([]);
    answer();
    await done;

    expect(chat.view()).toMatchObject({ person: null, ready: false, notices: [], connection: { state: "unauthenticated" } });
    expect(scene.client.conversationId).toBe("");
  });

  test("says so if the server did not answer, and forgets all the same", async () => {
    const { chat } = await annasChat(() => Promise.reject(new Error("no network")));

    await chat.signOut();

    expect(chat.view()).toMatchObject({ person: null, transcript: [], notices: [{ text: expect.stringContaining("still be signed in") }] });
  });
});

test("what the server says about its model is shown until it says something else", async () => {
  const { chat, scene } = await annasChat(() => Promise.resolve());
  const info = { model: {}, backend: "embedded", agents: [] };

  scene.line.say(0, "ServerInfo", { ...info, notice: "No language model answers." });
  scene.line.say(0, "ServerInfo", { ...info, notice: "No language model answers." });
  expect(chat.view()).toMatchObject({ model: "No language model answers.", notices: [] });
  scene.line.say(0, "ServerInfo", { ...info, backend: "openai" });

  expect(chat.view().model).toBe("");
});
