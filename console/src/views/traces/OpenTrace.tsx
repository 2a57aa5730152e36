/** One trace with its content, and links to where it belongs. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { get } from "../../api/http.ts";
import type { WholeTrace } from "../../api/types.ts";
import { Json } from "../../parts/Json.tsx";
import { Loaded } from "../../parts/States.tsx";
import { actor, moment, title, words } from "../../parts/format.ts";

export function OpenTrace({ id, onClose }: { id: string; onClose: () => void }) {
  const trace = useQuery({ queryKey: ["trace", id], queryFn: ({ signal }) => get<WholeTrace>(`/v1/traces/${id}`, {}, signal), staleTime: Infinity });
  return (
    <aside className="open-trace" aria-label="The chosen trace">
      <button type="button" onClick={onClose}>
        Close
      </button>
      <Loaded query={trace} what="the trace">
        {({ action, label, memoryType, memoryId, actor: by, createdAt, content, conversationId, messageId, metadata, reason }) => (
          <>
            <h3>
              {title(label ?? memoryType ?? "memory")}, {words(action)}
            </h3>
            <p className="quiet-text">
              {moment(createdAt)}
              {by && `, by ${actor(words(by))}`}
              {reason && `, because: ${reason}`}
            </p>
            <blockquote>{content || "No text."}</blockquote>
            <p className="turns">
              <Link to="/chat/$conversationId" params={{ conversationId }}>
                The conversation
              </Link>
              <Link to="/traces" search={{ conversation: conversationId }}>
                Its traces
              </Link>
              {messageId && (
                <Link to="/why/$messageId" params={{ messageId }}>
                  Why the answer was given
                </Link>
              )}
              {memoryType !== "memory_block" && (
                <Link to="/memory" search={{ id: memoryId }}>
                  The memory
                </Link>
              )}
            </p>
            <Json label="All facts of this trace" value={metadata} />
          </>
        )}
      </Loaded>
    </aside>
  );
}
