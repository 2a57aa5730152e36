/** What stands between the person and the conversation, in words that say what to do. */

import type { Notice } from "../chat/chat.ts";
import type { Connection } from "../protocol/index.ts";

interface NoticesProps {
  connection: Connection;
  notices: readonly Notice[];
  onPutAway: (notice: Notice) => void;
  onReopen: () => void;
  onStartOver: () => void;
}

export function Notices({ connection, notices, onPutAway, onReopen, onStartOver }: NoticesProps) {
  return (
    <div className="notices" role="alert">
      {connection.state === "unauthenticated" && (
        <div className="notice">
          <p>
            This page does not know who you are. Open the address that <code>anamnesis serve</code> printed; it carries
            your key.
          </p>
        </div>
      )}
      {connection.state === "elsewhere" && (
        <div className="notice">
          <p>This conversation was opened elsewhere. It goes on there.</p>
          <button type="button" onClick={onReopen}>
            Continue here
          </button>
        </div>
      )}
      {connection.state === "refused" && (
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
          <button type="button" onClick={() => onPutAway(notice)}>
            Dismiss
          </button>
        </div>
      ))}
    </div>
  );
}
