/** The page: a header, the conversation with its traces beside it, and a place to write. */

import { useCallback, useSyncExternalStore } from "react";
import type { Chat } from "../chat/chat.ts";
import { isAwaited, type Exchange } from "../chat/transcript.ts";
import { Composer } from "./Composer.tsx";
import { Conversation } from "./Conversation.tsx";
import { Header } from "./Header.tsx";
import { Notices } from "./Notices.tsx";
import { useKept } from "./useKept.ts";

export function App({ chat }: { chat: Chat }) {
  const { transcript, connection, notices, ready } = useSyncExternalStore(chat.watch, chat.view);
  const [tracesShown, setTracesShown] = useKept("anamnesis.traces", true);
  const askAgain = useCallback((exchange: Exchange) => chat.askAgain(exchange), [chat]);
  return (
    <div className={tracesShown ? "page with-traces" : "page"}>
      <Header
        connection={connection}
        tracesShown={tracesShown}
        onToggleTraces={() => setTracesShown(!tracesShown)}
        onStartOver={ready && transcript.length > 0 ? () => chat.startOver() : null}
      />
      <Conversation transcript={transcript} tracesShown={tracesShown} onAskAgain={askAgain} />
      <footer>
        <Notices
          connection={connection}
          notices={notices}
          onPutAway={(notice) => chat.putAway(notice)}
          onReopen={() => chat.reopen()}
          onStartOver={() => chat.startOver()}
        />
        <Composer
          enabled={ready && connection.state !== "elsewhere" && connection.state !== "refused"}
          onSay={(text) => chat.say(text)}
          onStop={transcript.some(isAwaited) ? () => chat.stop() : null}
        />
        <p className="caution">Anamnesis is not a doctor. In an emergency, call your local emergency number.</p>
      </footer>
    </div>
  );
}
