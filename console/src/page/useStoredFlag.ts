/** A setting of the page that the browser stores. */

import { useState } from "react";

/** Like `useState` of a boolean, stored under `key` if the browser allows it. */
export function useStoredFlag(key: string, initial: boolean): [boolean, (value: boolean) => void] {
  const [value, setValue] = useState(() => {
    try {
      return (window.localStorage.getItem(key) ?? String(initial)) === "true";
    } catch {
      return initial;
    }
  });
  const store = (next: boolean) => {
    setValue(next);
    try {
      window.localStorage.setItem(key, String(next));
    } catch {
      // Not stored: the setting lasts until the page is closed.
    }
  };
  return [value, store];
}
