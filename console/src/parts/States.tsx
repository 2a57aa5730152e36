/** What a view shows while it loads, when it is empty, and when it could not be read. */

import { useQueryClient, type UseQueryResult } from "@tanstack/react-query";
import type { FormEvent, ReactNode } from "react";
import { Problem, giveReason } from "../api/http.ts";

export function Loading({ what }: { what: string }) {
  return (
    <p className="state loading" role="status">
      Loading {what} …
    </p>
  );
}

export function Empty({ children }: { children: ReactNode }) {
  return <div className="state empty">{children}</div>;
}

interface FailedProps {
  what: string;
  error: Error;
  onRetry: () => void;
}

/** Why something could not be read, and what to do. Staff is asked for the reason that the server requires. */
export function Failed({ what, error, onRetry }: FailedProps) {
  if (error instanceof Problem && error.kind === "reason_required") return <ReasonForm what={what} />;
  return (
    <div className="state failed" role="alert">
      <p>
        <strong>{capital(what)} could not be shown.</strong> {error.message}
      </p>
      <button type="button" onClick={onRetry}>
        Try again
      </button>
    </div>
  );
}

function ReasonForm({ what }: { what: string }) {
  const queries = useQueryClient();
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    giveReason(String(new FormData(event.currentTarget).get("reason")).trim());
    void queries.invalidateQueries();
  };
  return (
    <form className="state reason" onSubmit={submit}>
      <label>
        <span>
          {capital(what)} {what.endsWith("s") ? "belong" : "belongs"} to somebody else. Why do you need to read it? The reason is kept, and the person can see it.
        </span>
        <input name="reason" required maxLength={200} autoComplete="off" />
      </label>
      <button type="submit" className="primary">
        Show
      </button>
    </form>
  );
}

interface LoadedProps<T> {
  query: UseQueryResult<T, Error>;
  /** What is read, in the plural or with an article: "the blocks". */
  what: string;
  children: (data: T) => ReactNode;
}

/** Shows the data of a query, or the state it is in. Earlier data stays visible while newer data loads. */
export function Loaded<T>({ query, what, children }: LoadedProps<T>) {
  if (query.data !== undefined) return children(query.data);
  if (query.error) return <Failed what={what} error={query.error} onRetry={() => void query.refetch()} />;
  return <Loading what={what} />;
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
