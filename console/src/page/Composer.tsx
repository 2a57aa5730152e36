/** Where one writes: Enter sends, Shift+Enter begins a new line. */

import { useRef, type FormEvent, type KeyboardEvent } from "react";

interface ComposerProps {
  enabled: boolean;
  onSay: (text: string) => void;
  /** Null while no answer is under way. */
  onStop: (() => void) | null;
}

export function Composer({ enabled, onSay, onStop }: ComposerProps) {
  const field = useRef<HTMLTextAreaElement>(null);

  const send = (event: FormEvent) => {
    event.preventDefault();
    const text = field.current?.value.trim();
    if (!enabled || !text || !field.current) return;
    onSay(text);
    field.current.value = "";
    field.current.focus();
  };
  const sendOnEnter = (event: KeyboardEvent) => {
    // While a word is being composed (Chinese, Japanese, Korean), Enter ends the word.
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) send(event);
  };

  return (
    <form className="composer" onSubmit={send}>
      <textarea
        ref={field}
        rows={2}
        aria-label="Your message"
        placeholder="Write a message …"
        autoComplete="off"
        autoFocus
        onKeyDown={sendOnEnter}
      />
      {onStop && (
        <button type="button" onClick={onStop}>
          Stop
        </button>
      )}
      <button type="submit" className="primary" disabled={!enabled}>
        Send
      </button>
    </form>
  );
}
