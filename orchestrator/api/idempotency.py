"""Carries out a request with an Idempotency-Key once, and answers a repeated one as the first."""

from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Annotated, Final, TypeAlias

from fastapi import Header, Request
from starlette.responses import Response

from orchestrator.errors import KEY_REUSED, REQUEST_RUNNING, AnamnesisError
from orchestrator.store.engine.database import Store

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
    target = f"{request.method} {request.url.path}?{request.url.query}".encode()
    fingerprint = sha256(target + b"\n" + body).hexdigest()
    known = await store.write(lambda tx: tx.replies.begin(person, key, fingerprint))
    if known is not None:
        if known.fingerprint != fingerprint:
            raise AnamnesisError(KEY_REUSED)
        if known.status is None:
            raise AnamnesisError(REQUEST_RUNNING, seconds=WAIT_SECONDS)
        headers = {REPLAYED: "true"}
        return Response(known.body, known.status, headers, "application/json")
    try:
        answer = await work()
    except BaseException:
        await store.write(lambda tx: tx.replies.abandon(person, key))
        raise
    status, text = answer.status_code, bytes(answer.body).decode()
    await store.write(lambda tx: tx.replies.finish(person, key, status, text))
    return answer
