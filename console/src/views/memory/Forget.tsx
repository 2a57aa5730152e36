/** Forgets a memory, after showing what goes along. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get } from "../../api/http.ts";
import type { Deletion, MemoryFacts, WholeMemory } from "../../api/types.ts";
import { ConfirmedButton } from "../../parts/ConfirmedButton.tsx";
import { Loaded } from "../../parts/States.tsx";
import { useForget } from "./undo.tsx";

export function Forget({ memory }: { memory: MemoryFacts }) {
  const [asked, setAsked] = useState(false);
  const forget = useForget(memory.id);
  const preview = useQuery({
    queryKey: ["deletion", memory.id],
    queryFn: ({ signal }) => get<Deletion>(`/v1/memories/${memory.id}/deletion`, {}, signal),
    enabled: asked,
    staleTime: 0,
  });
  return (
    <>
      <ConfirmedButton label="Forget" quiet title="Forget this?" confirm="Forget it" cancel="Keep it" onConfirm={() => forget.mutate()} onOpen={() => setAsked(true)}>
        {asked && (
        <Loaded query={preview} what="what goes along">
          {({ memories, derived, utterances }) => (
            <>
              <p>Answers will not use this any more. You can undo it.</p>
              <Group name="Forgotten" items={memories} />
              <Group name="Forgotten along with it, because it was made from it" items={derived} />
              <Group name="No longer found, because it rests on them; the messages stay in their conversations" items={utterances} />
            </>
          )}
        </Loaded>
        )}
      </ConfirmedButton>
      {forget.error && <p className="failure">{forget.error.message}</p>}
    </>
  );
}

function Group({ name, items }: { name: string; items: readonly WholeMemory[] }) {
  if (items.length === 0) return null;
  return (
    <div className="preview">
      <b>{name}:</b>
      <ul className="plain">
        {items.map(({ id, content }) => (
          <li key={id}>{content}</li>
        ))}
      </ul>
    </div>
  );
}
