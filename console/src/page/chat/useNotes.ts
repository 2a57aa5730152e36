/** The notes of a conversation, also those that were written on another device. */

import { useQuery } from "@tanstack/react-query";
import { getAll } from "../../api/http.ts";
import type { NoteText } from "../../api/types.ts";

const NONE: readonly NoteText[] = [];

export function useNotes(conversationId: string, enabled: boolean): readonly NoteText[] {
  const notes = useQuery({
    queryKey: ["notes", conversationId],
    queryFn: ({ signal }) => getAll<NoteText>(`/v1/conversations/${conversationId}/notes`, {}, signal),
    enabled: enabled && conversationId !== "",
    staleTime: Infinity,
  });
  return notes.data ?? NONE;
}
