/** Messages about problems; each says what to do. */

import type { Notice } from "../../chat/chat.ts";
import type { Connection } from "../../protocol/index.ts";
import { SignInNotice } from "../SignInNotice.tsx";

interface NoticesProps {
  connection: Connection;
  /** The refused conversation is shown, because staff may read it. */
  reading: boolean;
  notices: readonly Notice[];
  onDismiss: (notice: Notice) => void;
  onReopen: () => void;
  onStartOver: () => void;
}

export function Notices({ connection, reading, notices, onDismiss, onReopen, onStartOver }: NoticesProps) {
  return (
    <div className="notices" role="alert">
      {connection.state === "unauthenticated" && (
        <SignInNotice />
      )}
      {connection.state === "elsewhere" && (
        <div className="notice">
          <p>This conversation was opened elsewhere, and continues there.</p>
          <button type="button" onClick={onReopen}>
            Continue here
          </button>
        </div>
      )}
      {connection.state === "displaced" && (
        <div className="notice">
          <p>Somebody else has signed in, in another tab of this browser. Their conversation continues there.</p>
          <button type="button" onClick={onReopen}>
            Continue here
          </button>
        </div>
      )}
      {connection.state === "refused" && !reading && (
        <div className="notice">
          <p>{connection.error.message}</p>
          <button type="button" onClick={onStartOver}>
            Start a new conversation
          </button>
        </div>
      )}
      {notices.map((notice) => (
        <div className="notice" key={notice.id}>
          <p>{notice.text}</p>
          <button type="button" onClick={() => onDismiss(notice)}>
            Dismiss
          </button>
        </div>
      ))}
    </div>
  );
}
