/** What the overview computes: days, in UTC as the server counts them, and the order of stations. Pure functions only. */

const DAY_MS = 86_400_000;

/** The beginning of a period that ends today and has so many days. */
export function startOf(days: number, now = new Date()): string {
  const today = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate());
  return new Date(today - (days - 1) * DAY_MS).toISOString();
}

/** Each day of a period, such as "2026-11-18", so that days without anything are visible, too. */
export function everyDay(since: string, until: string): string[] {
  const days: string[] = [];
  for (let at = Date.parse(since.slice(0, 10)); at <= Date.parse(until); at += DAY_MS) days.push(new Date(at).toISOString().slice(0, 10));
  return days;
}

/** The first and last moment of a day. */
export const dayRange = (day: string) => ({ since: `${day}T00:00:00Z`, until: `${day}T23:59:59.999Z` });

const STATIONS = ["read", "understand", "guard", "embed", "recall", "pick", "answer", "write"];

/** Stations in the order in which a turn passes them; unknown ones last. */
export function inOrder<T extends { readonly name: string }>(stations: readonly T[]): T[] {
  const place = ({ name }: T) => (STATIONS.includes(name) ? STATIONS.indexOf(name) : STATIONS.length);
  return stations.toSorted((one, other) => place(one) - place(other));
}
