/** Requests to the HTTP API of docs/api.md, by the session's cookie. */

/** An answer other than success, as the server describes it (RFC 9457). `status` is 0 if there was no answer. */
export class Problem extends Error {
  readonly status: number;
  /** The stable name of the problem, such as `reason_required`; empty if the server gave none. */
  readonly kind: string;

  constructor(status: number, name: string, detail: string) {
    super(detail);
    this.status = status;
    this.kind = name;
  }
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** A page of a list. `next` is the cursor of the following page, null at the end. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly next: string | null;
}

/** The most entries that the server puts into a page. */
export const LARGEST_PAGE = 200;

let reason = "";

/** Why staff reads the memory of others. It is sent with every later request, and the server keeps it in a trace. */
export function giveReason(text: string): void {
  reason = text;
}

/** An address with its query; parameters that are undefined or empty are left out. */
export function address(path: string, query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return given.length > 0 ? `${path}?${search}` : path;
}

export function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return request<T>("GET", address(path, query), undefined, signal);
}

/** All entries of a list, page by page. */
export async function getAll<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | undefined;
  do {
    const page: Page<T> = await get(path, { ...query, limit: LARGEST_PAGE, cursor }, signal);
    items.push(...page.items);
    cursor = page.next ?? undefined;
  } while (cursor !== undefined);
  return items;
}

/** A file that the server makes. */
export async function getFile(path: string, query: Query = {}): Promise<Blob> {
  return (await succeeding("GET", address(path, query))).blob();
}

/** A request that writes. The key lets the server recognise a repetition, so nothing is done twice. */
export function send<T>(method: "POST" | "PATCH" | "DELETE", path: string, body?: unknown): Promise<T> {
  return request<T>(method, path, body);
}

async function request<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const response = await succeeding(method, path, body, signal);
  return (response.status === 204 ? null : await response.json()) as T;
}

/** The answer, if it is one of success. */
async function succeeding(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET") headers["Idempotency-Key"] = crypto.randomUUID();
  if (reason) headers["Anamnesis-Reason"] = reason;
  const response = await answer(path, { method, headers, cache: "no-store", ...(signal && { signal }), ...(body !== undefined && { body: JSON.stringify(body) }) });
  if (response.ok) return response;
  const problem = (await response.json().catch(() => ({}))) as { type?: string; detail?: string };
  throw new Problem(response.status, problem.type?.replace("/problems/", "") ?? "", problem.detail ?? `The server answered ${response.status}.`);
}

async function answer(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(path, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(0, "", "The server did not answer. Check that it is running and that this device is online.");
  }
}
