"""Carries out a request with an Idempotency-Key once, and answers a repeated one as the first."""

from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Annotated, Final, TypeAlias

from fastapi import Header, Request
from starlette.responses import Response

from orchestrator.errors import KEY_REUSED, MEMORY_NOT_FOUND, REQUEST_RUNNING, AnamnesisError
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.repositories.api.replies import ERASED

REPLAYED: Final = "Idempotency-Replayed"
"""The header of an answer that was given before."""
WAIT_SECONDS: Final = 2

IdempotencyKey: TypeAlias = Annotated[
    str | None,
    Header(
        pattern=r"^[!-~]{1,128}$",
        description="Any text of your own. A repeated request with the same key gets the first answer.",
    ),
]


async def once(
    store: Store,
    request: Request,
    person: str,
    key: str | None,
    body: bytes,
    work: Callable[[], Awaitable[Response]],
) -> Response:
    """Carry out `work`, or return the answer that the same request with the same key got before.

    If the work fails, the key is free again.
    """
    if key is None:
        return await work()
    known = await _reserve(store, request, person, key, body)
    if known is not None:
        return known

    async def work_and_keep() -> Response:
        answer = await work()
        await store.write(lambda tx: _keep(tx, person, key, answer))
        return answer

    return await _or_release(store, person, key, work_and_keep())


async def once_within(
    store: Store,
    request: Request,
    person: str,
    key: str | None,
    body: bytes,
    work: Callable[[Transaction], Response],
) -> Response:
    """Like `once`, for work within one transaction, which also keeps the answer.

    So no deletion can come between the work and its answer, and a crash loses both or none.
    """
    if key is None:
        return await store.write(work)

    def work_and_keep(tx: Transaction) -> Response:
        answer = work(tx)
        _keep(tx, person, key, answer)
        return answer

    known = await _reserve(store, request, person, key, body)
    if known is not None:
        return known
    return await _or_release(store, person, key, store.write(work_and_keep))


async def _reserve(store: Store, request: Request, person: str, key: str, body: bytes) -> Response | None:
    """Reserve a key; returns None, or the answer that the same request got before.

    An answer that was erased with its memory says that there is no such memory.
    """
    target = f"{request.method} {request.url.path}?{request.url.query}".encode()
    fingerprint = sha256(target + b"\n" + body).hexdigest()
    known = await store.write(lambda tx: tx.replies.begin(person, key, fingerprint))
    if known is not None:
        if known.status == ERASED:
            raise AnamnesisError(MEMORY_NOT_FOUND)
        if known.fingerprint != fingerprint:
            raise AnamnesisError(KEY_REUSED)
        if known.status is None:
            raise AnamnesisError(REQUEST_RUNNING, seconds=WAIT_SECONDS)
        return Response(known.body, known.status, {REPLAYED: "true"}, "application/json")
    return None


async def _or_release(store: Store, person: str, key: str, work: Awaitable[Response]) -> Response:
    """The answer of the work. If it fails, the key is free again."""
    try:
        return await work
    except BaseException:
        await store.write(lambda tx: tx.replies.abandon(person, key))
        raise


def _keep(tx: Transaction, person: str, key: str, answer: Response) -> None:
    tx.replies.finish(person, key, answer.status_code, bytes(answer.body).decode())
