/** The roles of whoever is signed in. */

import { useQuery } from "@tanstack/react-query";
import { get } from "../api/http.ts";
import type { Session } from "../api/types.ts";

const READS_OTHERS = ["operator", "privacy", "analyst"];

/** Empty until it is known, and for nobody. */
export function useRoles(person: string | null): readonly string[] {
  const session = useQuery({ queryKey: ["session", person], queryFn: () => get<Session>("/v1/session"), staleTime: Infinity, retry: false, enabled: person !== null });
  return session.data?.roles ?? [];
}

/** Whether these are roles of staff that may read the conversations of others. */
export const readsOthers = (roles: readonly string[]): boolean => roles.some((role) => READS_OTHERS.includes(role));
