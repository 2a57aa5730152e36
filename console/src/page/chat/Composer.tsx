/** The field for a message: Enter sends it, Shift+Enter starts a new line. */

import { useEffect, useRef, type FormEvent, type KeyboardEvent } from "react";

interface ComposerProps {
  /** Who is signed in; null for nobody. */
  person: string | null;
  enabled: boolean;
  onSay: (text: string) => void;
  /** Null while no answer is running. */
  onStop: (() => void) | null;
}

export function Composer({ person, enabled, onSay, onStop }: ComposerProps) {
  const field = useRef<HTMLTextAreaElement>(null);
  const author = useRef<string | null>(null);
  useEffect(() => {
    // A text that one person has begun must not be seen by the next.
    if (author.current !== null && author.current !== person && field.current) field.current.value = "";
    author.current = person;
  }, [person]);

  const send = (event: FormEvent) => {
    event.preventDefault();
    const text = field.current?.value.trim();
    if (!enabled || !text || !field.current) return;
    onSay(text);
    field.current.value = "";
    field.current.focus();
  };
  const sendOnEnter = (event: KeyboardEvent) => {
    // While the person composes a word with an input method (Chinese, Japanese, Korean), Enter ends the word.
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
