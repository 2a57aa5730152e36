/** The page: a header, the conversation with its memory traces, and a field to write in. */

import { useCallback, useSyncExternalStore } from "react";
import type { Chat } from "../chat/chat.ts";
import { isAwaited, type Exchange } from "../chat/transcript.ts";
import { Composer } from "./Composer.tsx";
import { Conversation } from "./Conversation.tsx";
import { Header } from "./Header.tsx";
import { Notices } from "./Notices.tsx";
import { useStoredFlag } from "./useStoredFlag.ts";

export function App({ chat }: { chat: Chat }) {
  const { transcript, connection, notices, ready, person } = useSyncExternalStore(chat.watch, chat.view);
  const [tracesShown, setTracesShown] = useStoredFlag("anamnesis.traces", true);
  const askAgain = useCallback((exchange: Exchange) => chat.askAgain(exchange), [chat]);
  return (
    <div className={tracesShown ? "page with-traces" : "page"}>
      <Header
        connection={connection}
        tracesShown={tracesShown}
        onToggleTraces={() => setTracesShown(!tracesShown)}
        onStartOver={ready && transcript.length > 0 ? () => chat.startOver() : null}
        onSignOut={person === null ? null : () => void chat.signOut()}
      />
      <Conversation transcript={transcript} signedIn={person !== null} tracesShown={tracesShown} onAskAgain={askAgain} />
      <footer>
        <Notices
          connection={connection}
          notices={notices}
          onDismiss={(notice) => chat.dismiss(notice)}
          onReopen={() => chat.reopen()}
          onStartOver={() => chat.startOver()}
        />
        <Composer
          person={person}
          enabled={ready && connection.state !== "elsewhere" && connection.state !== "refused"}
          onSay={(text) => chat.say(text)}
          onStop={transcript.some(isAwaited) ? () => chat.stop() : null}
        />
        <p className="caution">Anamnesis is not a doctor. In an emergency, call your local emergency number.</p>
      </footer>
    </div>
  );
}
