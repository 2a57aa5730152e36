"""The lines of a ledger: each names the messages it rests on and the digest of the line before. Pure."""

import hashlib
import json
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from orchestrator.ops.clock import as_text

Kind: TypeAlias = Literal["file", "vector"]
Action: TypeAlias = Literal["memory", "empty", "edited", "deleted", "restored", "erased"]

CHUNK_ACTIONS: Final = ("memory", "empty")
"""The actions of lines that a chunk of messages made. `empty`: the chunk has nothing worth remembering."""

ALIVE: Final = ("memory", "edited", "restored")
"""The last action of a memory that is not deleted."""

CHAIN_RULES: Final = (
    "a line is missing before this one",
    "a line's text is not the one it was written with",
    "a line does not follow the one before",
    "a line's digest is not that of its values",
)


@dataclass(frozen=True, slots=True)
class Discussion:
    """A conversation of a person. Its id is the `discussionId` of workflows."""

    user_id: str
    id: str


@dataclass(frozen=True, slots=True)
class Point:
    """The last message that was processed. `hash` is the SHA-256 of its text."""

    message_id: str
    number: int
    hash: str


@dataclass(frozen=True, slots=True)
class MemoryBody:
    """What a memory says. One of kind `file` that a model wrote has only its text."""

    text: str
    title: str = ""
    summary: str = ""
    entities: tuple[str, ...] = ()
    key_phrases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NewLine:
    """A line to be appended. `messages` are those of its chunk; the memory's words come from `rests_on`."""

    action: Action
    memory_id: str
    chunk: int
    point: Point
    messages: tuple[str, ...]
    rests_on: tuple[str, ...]
    maker: str
    dropped: int
    at: str
    body: MemoryBody | None


@dataclass(frozen=True, slots=True)
class Line(NewLine):
    """A line of a ledger.

    `digest` covers everything but body and salt, for which it covers `body_digest`. When a memory is erased,
    body and salt are removed, and the chain still verifies.
    """

    number: int
    salt: str | None
    body_digest: str
    previous: str | None
    digest: str


@dataclass(frozen=True, slots=True)
class RollingSummary:
    """One version of the rolling summary. `hash` is the digest of the last memory line that it holds.

    It was made when the ledger had `seen` lines. `digest` covers `text_digest` instead of text and salt. When
    a memory is erased, text and salt are removed. Versions from before there was a `text_digest` have none.
    """

    number: int
    text: str | None
    salt: str | None
    text_digest: str | None
    hash: str
    seen: int
    maker: str
    at: str
    previous: str | None
    digest: str


def sha256(text: str) -> str:
    """The SHA-256 of a text, as hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def chained(last: Line | None, new: Iterable[NewLine]) -> list[Line]:
    """The new lines with their numbers and digests, after the last line of a ledger."""
    made: list[Line] = []
    for each in new:
        salt = secrets.token_hex(16) if each.body is not None else None
        values = {name: getattr(each, name) for name in NewLine.__dataclass_fields__}
        line = Line(
            **values,
            number=last.number + 1 if last else 1,
            salt=salt,
            body_digest=_body_digest(salt, each.body),
            previous=last.digest if last else None,
            digest="",
        )
        last = replace(line, digest=_digest(line))
        made.append(last)
    return made


def next_summary(
    last: RollingSummary | None, text: str, held: Line, lines: Sequence[Line], maker: str, at: datetime
) -> RollingSummary:
    """The next version of a rolling summary of a ledger, which holds all living memories up to `held`."""
    number, previous = (last.number + 1, last.digest) if last else (1, None)
    salt = secrets.token_hex(16)
    digest = _text_digest(salt, text)
    made = RollingSummary(
        number, text, salt, digest, held.digest, lines[-1].number, maker, as_text(at), previous, ""
    )
    return replace(made, digest=_summary_digest(made))


def broken_rules(lines: Sequence[Line]) -> Iterator[tuple[int, str]]:
    """The lines that break the chain, each with the broken rule."""
    before: Line | None = None
    for line in lines:
        if line.number != (before.number + 1 if before else 1):
            yield line.number, CHAIN_RULES[0]
        elif line.previous != (before.digest if before else None):
            yield line.number, CHAIN_RULES[2]
        if line.body is not None and line.body_digest != _body_digest(line.salt, line.body):
            yield line.number, CHAIN_RULES[1]
        if line.digest != _digest(line):
            yield line.number, CHAIN_RULES[3]
        before = line


def broken_summaries(summaries: Sequence[RollingSummary], lines: Sequence[Line]) -> Iterator[tuple[int, str]]:
    """The summaries that break their chain, or whose link names no line of the ledger."""
    known = {line.digest for line in lines}
    before: RollingSummary | None = None
    for each in summaries:
        if each.number != (before.number + 1 if before else 1):
            yield each.number, CHAIN_RULES[0]
        elif each.previous != (before.digest if before else None):
            yield each.number, CHAIN_RULES[2]
        if None not in (each.text, each.text_digest) and each.text_digest != _text_digest(
            each.salt, each.text or ""
        ):
            yield each.number, CHAIN_RULES[1]
        if each.digest != _summary_digest(each):
            yield each.number, CHAIN_RULES[3]
        if each.hash not in known:
            yield each.number, "the summary's last memory is not in the ledger"
        before = each


def point_of(lines: Sequence[Line]) -> Point | None:
    """The last message that was processed, by the last line of a chunk; None if there is none."""
    return next((line.point for line in reversed(lines) if line.action in CHUNK_ACTIONS), None)


def states(lines: Iterable[Line]) -> dict[str, Action]:
    """The last action of each memory. Those in `ALIVE` are not deleted."""
    return {line.memory_id: line.action for line in lines if line.memory_id}


def alive(lines: Sequence[Line]) -> list[Line]:
    """The memories that are not deleted, in the order in which they were made, with their present words."""
    now = states(lines)
    bodies = {line.memory_id: line.body for line in lines if line.body}
    return [
        replace(line, body=bodies[line.memory_id])
        for line in lines
        if line.action == "memory" and line.memory_id in bodies and now[line.memory_id] in ALIVE
    ]


def is_current(summary: RollingSummary | None, lines: Sequence[Line]) -> bool:
    """Whether a summary was made after the last edit, deletion, restoration and erasure of a memory."""
    if summary is None or summary.text is None:
        return False
    return all(line.action in CHUNK_ACTIONS for line in lines[summary.seen :])


def held_by(summary: RollingSummary, lines: Sequence[Line]) -> frozenset[str]:
    """The memories that a summary holds: those that lived when it was made, up to the one it names."""
    last = next((line.number for line in lines if line.digest == summary.hash), 0)
    then = states(lines[: max(summary.seen, last)])
    made = (line.memory_id for line in lines[:last] if line.action == "memory")
    return frozenset(id for id in made if then[id] in ALIVE)


def without_words(line: Line) -> Line:
    """The line of an erased memory."""
    return replace(line, body=None, salt=None)


def without_text(summary: RollingSummary) -> RollingSummary:
    """The summary of which a memory was erased."""
    return replace(summary, text=None, salt=None)


# --- lines as JSON ------------------------------------------------------------------------------------------


def line_json(line: Line) -> str:
    """A line as one JSON object, without a line break. `text` and `hash` are the names of the seed."""
    body = asdict(line.body) if line.body else {"text": None}
    return _json(
        {
            **body,
            "hash": line.point.hash,
            "number": line.number,
            "action": line.action,
            "memoryId": line.memory_id,
            "chunk": line.chunk,
            "lastMessage": line.point.message_id,
            "lastNumber": line.point.number,
            "messages": line.messages,
            "restsOn": line.rests_on,
            "maker": line.maker,
            "dropped": line.dropped,
            "at": line.at,
            "salt": line.salt,
            "bodyDigest": line.body_digest,
            "previous": line.previous,
            "digest": line.digest,
        }
    )


def line_of(value: dict[str, Any]) -> Line:
    """Read a line. Raises KeyError or TypeError if a value is missing or wrong."""
    body = None
    if value["text"] is not None:
        lists = {name: tuple(value[name]) for name in ("entities", "key_phrases")}
        body = MemoryBody(value["text"], value["title"], value["summary"], **lists)
    return Line(
        action=value["action"],
        memory_id=value["memoryId"],
        chunk=value["chunk"],
        point=Point(value["lastMessage"], value["lastNumber"], value["hash"]),
        messages=tuple(value["messages"]),
        rests_on=tuple(value["restsOn"]),
        maker=value["maker"],
        dropped=value["dropped"],
        at=value["at"],
        body=body,
        number=value["number"],
        salt=value["salt"],
        body_digest=value["bodyDigest"],
        previous=value["previous"],
        digest=value["digest"],
    )


def summary_json(summary: RollingSummary) -> str:
    """A version of the rolling summary as one JSON object."""
    return _json(asdict(summary))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _digest(line: Line) -> str:
    parts = (
        line.previous,
        line.number,
        line.action,
        line.memory_id,
        line.chunk,
        *(line.point.message_id, line.point.number, line.point.hash),
        *(line.messages, line.rests_on, line.maker, line.dropped, line.at, line.body_digest),
    )
    return sha256(_json(parts))


def _body_digest(salt: str | None, body: MemoryBody | None) -> str:
    return sha256(_json((salt, asdict(body) if body else None)))


def _text_digest(salt: str | None, text: str) -> str:
    return sha256(_json((salt, text)))


def _summary_digest(summary: RollingSummary) -> str:
    covered = (summary.text_digest, summary.seen) if summary.text_digest else ()
    parts = (summary.number, *covered, summary.hash, summary.maker)
    return sha256(_json((*parts, summary.at, summary.previous)))
