/** A choice of the person that this browser remembers. */

import { useState } from "react";

/** Like `useState` of a boolean, kept under `key` where the browser lets us. */
export function useKept(key: string, otherwise: boolean): [boolean, (value: boolean) => void] {
  const [value, setValue] = useState(() => {
    try {
      return (window.localStorage.getItem(key) ?? String(otherwise)) === "true";
    } catch {
      return otherwise;
    }
  });
  const keep = (next: boolean) => {
    setValue(next);
    try {
      window.localStorage.setItem(key, String(next));
    } catch {
      // Not remembered: the choice still holds until the page is closed.
    }
  };
  return [value, keep];
}
