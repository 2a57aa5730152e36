/** What an address of the page names. */

/** The conversation that an address of the chat names: empty for none, null if it is an address of another view. */
export function conversationIn(path: string): string | null {
  if (path === "/") return "";
  return /^\/chat\/([^/]+)\/?$/.exec(path)?.[1] ?? null;
}
