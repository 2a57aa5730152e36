/** The frame around every view: the name, links to the views, the state of the connection, signing out. */

import { useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import type { Connection } from "../protocol/index.ts";
import { ConfirmedButton } from "../parts/ConfirmedButton.tsx";
import { SignInNotice } from "./SignInNotice.tsx";
import { conversationIn } from "./address.ts";
import { useChat } from "./useChat.ts";
import { useRoles } from "./useRoles.ts";

const STATES: Record<Connection["state"], string> = {
  closed: "Not connected",
  connecting: "Connecting …",
  open: "Connected",
  idle: "Signed in",
  lost: "Connection lost, trying again …",
  unauthenticated: "Not signed in",
  elsewhere: "Opened elsewhere",
  displaced: "Somebody else signed in",
  refused: "Conversation not available",
};

export function Shell() {
  const { chat, view } = useChat();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const path = useRouterState({ select: ({ location }) => location.pathname });
  const isChat = conversationIn(path) !== null;
  const { connection, person, conversationId, transcript } = view;
  const signOut = () => {
    queries.clear();
    void chat.signOut();
    void navigate({ to: "/", replace: true });
  };
  return (
    <div className="page">
      <button type="button" className="skip" onClick={() => document.getElementById("content")?.focus()}>
        Skip to the content
      </button>
      <header>
        <h1>Anamnesis</h1>
        <nav aria-label="Views">
          {transcript.length > 0 ? (
            <Link to="/chat/$conversationId" params={{ conversationId }} className={isChat ? "active" : ""}>
              Chat
            </Link>
          ) : (
            <Link to="/" className={isChat ? "active" : ""}>
              Chat
            </Link>
          )}
          <Link to="/memory" activeProps={{ className: "active" }}>
            Memory
          </Link>
          <Link to="/traces" activeProps={{ className: "active" }}>
            Traces
          </Link>
          <Link to="/overview" activeProps={{ className: "active" }}>
            Overview
          </Link>
        </nav>
        <p className="connection" data-state={connection.state} role="status">
          {STATES[connection.state]}
        </p>
        {person !== null && <Roles person={person} />}
        <ConfirmedButton label="Sign out" title="Sign out?" confirm="Sign out now" onConfirm={person === null ? null : signOut}>
          This browser forgets the conversation, and messages that were not sent. The server keeps the conversation.
        </ConfirmedButton>
      </header>
      {isChat || person !== null ? <Outlet /> : <Unknown connection={connection} />}
    </div>
  );
}

/** In place of a view while nobody is known to be signed in. */
function Unknown({ connection }: { connection: Connection }) {
  return (
    <main id="content" className="view">
      {connection.state === "unauthenticated" ? <SignInNotice /> : <p className="state loading">{STATES[connection.state]}</p>}
    </main>
  );
}

/** The local key has all roles on this machine, and the page says so. */
function Roles({ person }: { person: string }) {
  const roles = useRoles(person);
  if (roles.length < 2) return null;
  const text = roles.length > 5 ? "all roles" : roles.join(", ");
  return (
    <span className="roles" title={`Signed in as ${person}, with these roles: ${roles.join(", ")}. The key of this machine has all of them.`}>
      {person}: {text}
    </span>
  );
}

export function NotFound() {
  return (
    <main id="content" className="view">
      <div className="state empty">
        <h2>There is no such page</h2>
        <p>
          The address may be incomplete. <Link to="/">Go to the chat</Link>
        </p>
      </div>
    </main>
  );
}

/** In place of a view that failed, or whose files could not be loaded. */
export function Broken() {
  return (
    <main id="content" className="view">
      <div className="state failed" role="alert">
        <p>
          <strong>This view could not be shown.</strong> The server may have been updated or may be away. Nothing that you wrote is lost.
        </p>
        <button type="button" onClick={() => window.location.reload()}>
          Load the page again
        </button>
      </div>
    </main>
  );
}
