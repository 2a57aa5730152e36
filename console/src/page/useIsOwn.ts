/** Whether a conversation is one's own; staff also reads those of others. */

import { useQuery } from "@tanstack/react-query";
import { get } from "../api/http.ts";
import type { ConversationFacts } from "../api/types.ts";
import { useChat } from "./useChat.ts";

/** True until it is known. */
export function useIsOwn(conversationId: string): boolean {
  const { person } = useChat().view;
  const conversation = useQuery({
    queryKey: ["conversation", conversationId],
    queryFn: ({ signal }) => get<ConversationFacts>(`/v1/conversations/${conversationId}`, {}, signal),
    staleTime: Infinity,
  });
  return !conversation.data || conversation.data.person === person;
}
