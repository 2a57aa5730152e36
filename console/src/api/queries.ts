/** How the page's queries behave: what is retried, and what happens when the session has ended. */

import { QueryCache, QueryClient } from "@tanstack/react-query";
import { Problem } from "./http.ts";

const MOST_RETRIES = 2;

/** The store of what was read. `onUnauthenticated` is called when the server says that nobody is signed in. */
export function createQueries(onUnauthenticated: () => void): QueryClient {
  return new QueryClient({
    queryCache: new QueryCache({
      onError: (error) => {
        if (error instanceof Problem && error.status === 401) onUnauthenticated();
      },
    }),
    defaultOptions: {
      queries: {
        staleTime: 10_000,
        refetchOnWindowFocus: false,
        retry: (count, error) => count < MOST_RETRIES && isTemporary(error),
      },
    },
  });
}

function isTemporary(error: Error): boolean {
  return !(error instanceof Problem) || error.status === 0 || error.status === 429 || error.status >= 500;
}
