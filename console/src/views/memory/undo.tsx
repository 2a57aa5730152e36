/** Changes of memories, and a bar that takes the last one back. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { createContext, useContext, useMemo, useState, type ReactNode } from "react";
import { send } from "../../api/http.ts";

interface Done {
  readonly what: string;
  readonly acts: readonly string[];
}

interface Bar {
  readonly done: Done | null;
  readonly show: (done: Done | null) => void;
}

const Undo = createContext<Bar>({ done: null, show: () => {} });

export function UndoProvider({ children }: { children: ReactNode }) {
  const [done, show] = useState<Done | null>(null);
  const bar = useMemo(() => ({ done, show }), [done]);
  return <Undo.Provider value={bar}>{children}</Undo.Provider>;
}

export function UndoBar() {
  const { done, show } = useContext(Undo);
  const queries = useQueryClient();
  const undo = useMutation({
    mutationFn: async (acts: readonly string[]) => {
      for (const act of acts.toReversed()) await send("POST", "/v1/memories/undo", { act });
    },
    onSuccess: () => show({ what: "Undone.", acts: [] }),
    onSettled: () => queries.invalidateQueries(),
  });
  return (
    <div role="status" className="undo-place">
      {done && (
        <div className="undo">
          <span>{undo.error ? undo.error.message : done.what}</span>
          {done.acts.length > 0 && (
            <button type="button" onClick={() => undo.mutate(done.acts)} disabled={undo.isPending}>
              Undo
            </button>
          )}
          <button type="button" className="quiet" onClick={() => show(null)}>
            Close
          </button>
        </div>
      )}
    </div>
  );
}

interface Change {
  readonly what: string;
  readonly changes: { readonly content?: string; readonly value?: string; readonly pinned?: boolean; readonly archived?: boolean };
}

export function useChange(id: string, onDone?: () => void) {
  const { show } = useContext(Undo);
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ changes }: Change) => send<{ acts: readonly string[] }>("PATCH", `/v1/memories/${id}`, changes),
    onSuccess: async ({ acts }, { what }) => {
      show({ what, acts });
      onDone?.();
      await queries.invalidateQueries();
    },
  });
}

export function useForget(id: string) {
  const { show } = useContext(Undo);
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => send<{ act: string; canBeUndone: boolean }>("DELETE", `/v1/memories/${id}`),
    onSuccess: async ({ act, canBeUndone }) => {
      show({ what: "Forgotten.", acts: canBeUndone ? [act] : [] });
      await queries.invalidateQueries();
    },
  });
}
