/** The person's own messages of a conversation that this browser has not seen. The server replays only what it sent. */

import { useQueries } from "@tanstack/react-query";
import { get } from "../../api/http.ts";
import type { WholeMessage } from "../../api/types.ts";
import type { Transcript } from "../../chat/transcript.ts";

export type Questions = ReadonlyMap<string, string>;

/** The texts by the ids of the messages; those that are not read yet are missing. */
export function useEarlierQuestions(conversationId: string, transcript: Transcript): Questions {
  const missing = transcript.filter(({ id, question }) => question === null && id !== "").map(({ id }) => id);
  return useQueries({
    queries: missing.map((id) => ({
      queryKey: ["message", conversationId, id],
      queryFn: () => get<WholeMessage>(`/v1/messages/${id}`),
      staleTime: Infinity,
    })),
    combine: toQuestions,
  });
}

function toQuestions(results: readonly { data?: WholeMessage | undefined }[]): Questions {
  const said = results.flatMap(({ data }) => (data?.role === "user" ? [data] : []));
  return new Map(said.map(({ id, content }) => [id, content]));
}
