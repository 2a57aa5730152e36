/** How much of the memory behind the answers the chat shows. */

import * as Menu from "@radix-ui/react-dropdown-menu";
import { useState } from "react";

const DISPLAYS = { panel: "Beside each answer", line: "One line beneath each answer", hidden: "Hide" } as const;
export type MemoryDisplay = keyof typeof DISPLAYS;

const KEY = "anamnesis.traces";
const WIDE = "(min-width: 75rem)";

/** The choice, which the browser stores if it can. By default, wide windows show everything and narrow ones a line. */
export function useMemoryDisplay(): [MemoryDisplay, (display: MemoryDisplay) => void] {
  const [display, setDisplay] = useState<MemoryDisplay>(() => {
    const kept = read();
    return kept !== null && kept in DISPLAYS ? (kept as MemoryDisplay) : window.matchMedia(WIDE).matches ? "panel" : "line";
  });
  const choose = (next: MemoryDisplay) => {
    setDisplay(next);
    try {
      window.localStorage.setItem(KEY, next);
    } catch {
      // Not stored: the choice lasts until the page is closed.
    }
  };
  return [display, choose];
}

function read(): string | null {
  try {
    return window.localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export function MemoryMenu({ display, onChange }: { display: MemoryDisplay; onChange: (display: MemoryDisplay) => void }) {
  return (
    <Menu.Root modal={false}>
      <Menu.Trigger asChild>
        <button type="button" className="memory-menu">
          Memory traces
        </button>
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Content className="menu" align="end" sideOffset={4}>
          <Menu.RadioGroup value={display} onValueChange={(value) => onChange(value as MemoryDisplay)}>
            {Object.entries(DISPLAYS).map(([value, name]) => (
              <Menu.RadioItem key={value} value={value} className="menu-item">
                <Menu.ItemIndicator className="menu-mark">✓</Menu.ItemIndicator>
                {name}
              </Menu.RadioItem>
            ))}
          </Menu.RadioGroup>
        </Menu.Content>
      </Menu.Portal>
    </Menu.Root>
  );
}
