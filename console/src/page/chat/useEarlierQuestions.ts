/** The person's own messages of a conversation that this browser has not seen. The server replays only what it sent. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { getAll } from "../../api/http.ts";
import type { TranscriptMessage } from "../../api/types.ts";
import type { Transcript } from "../../chat/transcript.ts";

/** A message of the person; `superseded` if it was edited later. */
export interface EarlierQuestion {
  readonly text: string;
  readonly superseded: boolean;
}

export type Questions = ReadonlyMap<string, EarlierQuestion>;

const NONE: Questions = new Map();

/** The messages by their ids; those that are not read yet are missing. */
export function useEarlierQuestions(conversationId: string, transcript: Transcript): Questions {
  const missing = transcript.filter(({ id, question }) => question === null && id !== "");
  const earlier = useQuery({
    queryKey: ["transcript", conversationId, missing.at(-1)?.id],
    queryFn: ({ signal }) => readQuestions(conversationId, signal),
    enabled: missing.length > 0,
    staleTime: Infinity,
    placeholderData: keepPreviousData,
  });
  return missing.length > 0 ? (earlier.data ?? NONE) : NONE;
}

async function readQuestions(conversationId: string, signal: AbortSignal): Promise<Questions> {
  const messages = await getAll<TranscriptMessage>(`/v1/conversations/${conversationId}/transcript`, {}, signal);
  return new Map(messages.filter(({ role }) => role === "user").map(({ id, content, superseded }) => [id, { text: content, superseded }]));
}
