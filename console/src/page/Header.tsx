/** The name, the state of the connection, and the buttons for the whole page. */

import { useRef } from "react";
import type { Connection } from "../protocol/index.ts";

const STATES: Record<Connection["state"], string> = {
  closed: "Not connected",
  connecting: "Connecting …",
  open: "Connected",
  lost: "Connection lost, trying again …",
  unauthenticated: "Not signed in",
  elsewhere: "Opened elsewhere",
  displaced: "Somebody else signed in",
  refused: "Conversation not available",
};

interface HeaderProps {
  connection: Connection;
  tracesShown: boolean;
  onToggleTraces: () => void;
  /** Null while the conversation is empty. */
  onStartOver: (() => void) | null;
  /** Null while nobody is signed in. */
  onSignOut: (() => void) | null;
}

export function Header({ connection, tracesShown, onToggleTraces, onStartOver, onSignOut }: HeaderProps) {
  return (
    <header>
      <h1>Anamnesis</h1>
      <p className="connection" data-state={connection.state} role="status">
        {STATES[connection.state]}
      </p>
      <button type="button" className="traces-toggle" aria-pressed={tracesShown} onClick={onToggleTraces}>
        Memory traces
      </button>
      <ConfirmedButton label="New conversation" title="Start a new conversation?" confirm="Start" onConfirm={onStartOver}>
        This browser forgets the current conversation. The server keeps it.
      </ConfirmedButton>
      <ConfirmedButton label="Sign out" title="Sign out?" confirm="Sign out now" onConfirm={onSignOut}>
        This browser forgets the conversation, and messages that were not sent. The server keeps the conversation.
      </ConfirmedButton>
    </header>
  );
}

interface ConfirmedButtonProps {
  label: string;
  title: string;
  children: string;
  confirm: string;
  /** Null disables the button. */
  onConfirm: (() => void) | null;
}

/** A button that asks before it acts. */
function ConfirmedButton({ label, title, children, confirm, onConfirm }: ConfirmedButtonProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  return (
    <>
      <button type="button" disabled={!onConfirm} onClick={() => dialog.current?.showModal()}>
        {label}
      </button>
      <dialog ref={dialog} aria-label={title}>
        <form method="dialog">
          <h2>{title}</h2>
          <p>{children}</p>
          <div className="choices">
            <button type="submit">Stay</button>
            <button type="submit" className="primary" onClick={() => onConfirm?.()}>
              {confirm}
            </button>
          </div>
        </form>
      </dialog>
    </>
  );
}
