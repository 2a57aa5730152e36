/** Values as people read them. Pure functions only. */

const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const MOMENT = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** A day such as "18 Nov 2026". */
export const day = (moment: string | Date): string => DAY.format(new Date(moment));

/** The time of a moment of today, else its day. */
export function dayOrTime(moment: string, now = new Date()): string {
  const at = new Date(moment);
  return day(at) === day(now) ? TIME.format(at) : day(at);
}

/** A moment to the second. */
export const moment = (text: string): string => MOMENT.format(new Date(text));

/** `conversation_history` as "conversation history". */
export const words = (text: string): string => text.replaceAll("_", " ");

/** Like `words`, with a capital letter. */
export const title = (text: string): string => capital(words(text));

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** A share between 0 and 1 as "87 %". */
export const percent = (share: number): string => `${Math.round(share * 100)} %`;

/** A number between 0 and 1 with two decimals, as scores are read. */
export const score = (value: number): string => value.toFixed(2);

export const milliseconds = (value: number): string => (value < 1000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(1)} s`);

export const count = (number: number, one: string, many = `${one}s`): string => `${number.toLocaleString("en-GB")} ${number === 1 ? one : many}`;

/** What somebody is called: `person:ann` and `local` are read as they are, `GENERAL_HEALTH` as "General health". */
export const actor = (name: string): string => (/^[A-Z_]+$/.test(name) ? capital(words(name).toLowerCase()) : name);
