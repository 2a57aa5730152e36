/** The chat: the list of conversations, the open one with its memory, and a field to write in. */

import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useCallback, useEffect, useRef, useState } from "react";
import { isAwaited, type Exchange } from "../../chat/transcript.ts";
import { useChat } from "../useChat.ts";
import { Composer } from "./Composer.tsx";
import { Conversation } from "./Conversation.tsx";
import { ConversationList } from "./ConversationList.tsx";
import { MemoryMenu, useMemoryDisplay } from "./MemoryMenu.tsx";
import { Notices } from "./Notices.tsx";
import { OthersConversation } from "./OthersConversation.tsx";
import { readsOthers, useRoles } from "../useRoles.ts";
import { useEarlierQuestions } from "./useEarlierQuestions.ts";
import { useNotes } from "./useNotes.ts";

export function ChatPage() {
  const { chat, view } = useChat();
  const { transcript, connection, notices, ready, person, model, conversationId } = view;
  const [display, setDisplay] = useMemoryDisplay();
  const [listShown, setListShown] = useState(false);
  const startOver = useConversationInAddress();
  const questions = useEarlierQuestions(conversationId, transcript);
  const askAgain = useCallback((exchange: Exchange) => chat.askAgain(exchange), [chat]);
  const regenerate = useCallback((answer: string) => chat.regenerate(answer), [chat]);
  const edit = useCallback((message: string, text: string) => chat.edit(message, text), [chat]);
  const note = useCallback((message: string, text: string) => chat.note(message, text), [chat]);
  const noted = useNotes(conversationId, person !== null && transcript.length > 0);
  const isStaff = readsOthers(useRoles(person));
  const { conversationId: wanted } = useParams({ strict: false });
  const others = connection.state === "refused" && isStaff && wanted !== undefined ? wanted : null;
  const blocksOf = others ?? (transcript.length > 0 ? conversationId : "");
  const usable = ready && connection.state !== "elsewhere" && connection.state !== "refused";
  return (
    <div className="chat" data-memory={display}>
      <ConversationList
        person={person}
        current={conversationId}
        steps={transcript.length + transcript.filter(({ answers }) => answers.at(-1)?.progress === "done").length}
        shown={listShown}
        onClose={() => setListShown(false)}
        onStartOver={ready && transcript.length > 0 ? startOver : null}
      />
      <div className="talk">
        <div className="chat-bar">
          <button type="button" className="list-toggle" aria-expanded={listShown} onClick={() => setListShown(!listShown)}>
            Conversations
          </button>
          {blocksOf && (
            <Link to="/chat/$conversationId/blocks" params={{ conversationId: blocksOf }} className="button">
              Blocks
            </Link>
          )}
          <MemoryMenu display={display} onChange={setDisplay} />
        </div>
        {others !== null ? (
          <OthersConversation id={others} />
        ) : (
          <Conversation
            transcript={transcript}
            questions={questions}
            noted={noted}
            signedIn={person !== null}
            display={display}
            onAskAgain={askAgain}
            onRegenerate={usable ? regenerate : null}
            onEdit={usable ? edit : null}
            onNote={usable ? note : null}
          />
        )}
        <footer>
          <Notices
            connection={connection}
            reading={others !== null}
            notices={notices}
            onDismiss={(notice) => chat.dismiss(notice)}
            onReopen={() => chat.reopen()}
            onStartOver={startOver}
          />
          {model && <p className="model-note">{model}</p>}
          {others === null && (
            <Composer person={person} enabled={usable} onSay={(text) => chat.say(text)} onStop={transcript.some(isAwaited) ? () => chat.stop() : null} />
          )}
          <p className="caution">Anamnesis is not a doctor. In an emergency, call your local emergency number.</p>
        </footer>
      </div>
    </div>
  );
}

/** Opens the conversation that the address names, and gives the open conversation its address. */
function useConversationInAddress(): () => void {
  const { chat, view } = useChat();
  const navigate = useNavigate();
  const { conversationId: wanted } = useParams({ strict: false });
  const isFirst = useRef(true);
  const { conversationId, transcript, connection, person } = view;

  useEffect(() => {
    const { conversationId: opened, connection: now, transcript: shown } = chat.view();
    const arrived = !isFirst.current;
    isFirst.current = false;
    if (now.state === "idle") chat.open(wanted);
    else if (arrived && wanted !== undefined && wanted !== opened) chat.open(wanted);
    else if (arrived && wanted === undefined && shown.length > 0) chat.startOver();
  }, [chat, wanted, connection.state === "idle"]);

  useEffect(() => {
    const { conversationId: opened, transcript: shown } = chat.view();
    if (opened && shown.length > 0 && opened !== wanted) void navigate({ to: "/chat/$conversationId", params: { conversationId: opened }, replace: true });
  }, [chat, navigate, wanted, conversationId, transcript.length > 0]);

  useEffect(() => {
    // A conversation's address must not stay in the address bar when nobody, or somebody else, is signed in.
    if (connection.state === "displaced") void navigate({ to: "/", replace: true });
  }, [navigate, person, connection.state]);

  return useCallback(() => {
    chat.startOver();
    void navigate({ to: "/" });
  }, [chat, navigate]);
}
