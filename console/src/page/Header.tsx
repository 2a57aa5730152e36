/** The name, how the connection stands, and the two things one can do about the whole conversation. */

import { useRef } from "react";
import type { Connection } from "../protocol/index.ts";

const WORDS: Record<Connection["state"], string> = {
  closed: "Not connected",
  connecting: "Connecting …",
  open: "Connected",
  lost: "Connection lost, trying again …",
  unauthenticated: "Not signed in",
  elsewhere: "Opened elsewhere",
  refused: "Conversation not available",
};

interface HeaderProps {
  connection: Connection;
  tracesShown: boolean;
  onToggleTraces: () => void;
  /** Null while there is nothing to leave behind. */
  onStartOver: (() => void) | null;
}

export function Header({ connection, tracesShown, onToggleTraces, onStartOver }: HeaderProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  return (
    <header>
      <h1>Anamnesis</h1>
      <p className="connection" data-state={connection.state} role="status">
        {WORDS[connection.state]}
      </p>
      <button type="button" className="traces-toggle" aria-pressed={tracesShown} onClick={onToggleTraces}>
        Memory traces
      </button>
      <button type="button" disabled={!onStartOver} onClick={() => dialog.current?.showModal()}>
        New conversation
      </button>
      <dialog ref={dialog} aria-labelledby="start-over">
        <form method="dialog">
          <h2 id="start-over">Start a new conversation?</h2>
          <p>This browser forgets the present one. The server keeps it.</p>
          <div className="choices">
            <button type="submit">Stay</button>
            <button type="submit" className="primary" onClick={() => onStartOver?.()}>
              Start
            </button>
          </div>
        </form>
      </dialog>
    </header>
  );
}
