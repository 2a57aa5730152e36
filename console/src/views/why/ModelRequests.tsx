/** What was sent to models for an answer, and how it differs from the turn before. */

import * as Tabs from "@radix-ui/react-tabs";
import type { ModelRequest } from "../../api/types.ts";
import { Diff } from "../../parts/Diff.tsx";
import { compare } from "../../parts/compare.ts";
import { words } from "../../parts/format.ts";

export function ModelRequests({ requests }: { requests: readonly ModelRequest[] }) {
  return (
    <ul className="rows">
      {requests.map((request) => (
        <li key={request.id}>
          <details>
            <summary>
              <b>{words(request.role)}</b>: {request.model}, {words(request.outcome)}, {request.promptTokens.toLocaleString("en-GB")} tokens sent,{" "}
              {request.completionTokens.toLocaleString("en-GB")} received
            </summary>
            <Sent request={request} />
          </details>
        </li>
      ))}
    </ul>
  );
}

function Sent({ request: { readable, request, previous } }: { request: ModelRequest }) {
  if (readable === null) return <p>The text was erased.</p>;
  return (
    <Tabs.Root defaultValue={previous === null ? "sent" : "difference"}>
      <Tabs.List className="tabs" aria-label="What was sent">
        {previous !== null && <Tabs.Trigger value="difference">Difference to the turn before</Tabs.Trigger>}
        <Tabs.Trigger value="sent">As people read it</Tabs.Trigger>
        {request !== null && <Tabs.Trigger value="exact">Exactly as it was sent</Tabs.Trigger>}
      </Tabs.List>
      {previous !== null && (
        <Tabs.Content value="difference">
          <Diff lines={compare(previous.split("\n"), readable.split("\n")).filter(({ change }) => change !== null)} />
        </Tabs.Content>
      )}
      <Tabs.Content value="sent">
        <pre tabIndex={0}>{readable}</pre>
      </Tabs.Content>
      {request !== null && (
        <Tabs.Content value="exact">
          <pre tabIndex={0}>{request}</pre>
        </Tabs.Content>
      )}
    </Tabs.Root>
  );
}
