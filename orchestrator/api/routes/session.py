"""`/v1/session`: signs a browser in and out."""

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict

from orchestrator.api.access.checking import caller_of
from orchestrator.api.answers import Answer, problems
from orchestrator.api.authentication import Authentication, cookie_name, session_token
from orchestrator.api.body import read_body, read_json, request_body
from orchestrator.errors import INVALID_FIELD, MISSING_FIELD, AnamnesisError

PATH = "/v1/session"
COOKIE_PATH = "/v1"
"""Servers on other ports of this host get the cookie only with requests for such paths."""


class NewSession(BaseModel):
    """What a page posts to sign in: the one-time code from the address, or a key."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    code: str | None = None
    key: str | None = None


class SignedIn(Answer):
    """The person who is signed in, and their roles."""

    person: str
    roles: tuple[str, ...]


def build_router(authentication: Authentication, body_limit: int) -> APIRouter:
    """Build the routes."""
    router = APIRouter(tags=["session"])
    sessions = authentication.sessions

    @router.get(PATH, responses=problems())
    async def show(request: Request) -> SignedIn:
        """Who is signed in, and what they may do."""
        caller = caller_of(request)
        return SignedIn(person=caller.person, roles=tuple(sorted(caller.roles)))

    @router.post(PATH, status_code=204, responses=problems(), openapi_extra=request_body(NewSession))
    async def sign_in(request: Request) -> Response:
        """Start a session. The browser's earlier one ends, because its cookie is replaced."""
        given = read_json(await read_body(request, body_limit), NewSession)
        if given.code is None and given.key is None:
            raise AnamnesisError(MISSING_FIELD, field="code")
        if given.code is not None and given.key is not None:
            raise AnamnesisError(INVALID_FIELD, field="code", rule="send either a code or a key")
        person = authentication.sign_in(key=given.key, code=given.code)
        earlier = session_token(request)
        if earlier is not None:
            sessions.end(earlier)
        response = Response(status_code=204)
        response.set_cookie(
            cookie_name(request),
            sessions.start(person),
            path=COOKIE_PATH,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    @router.delete(PATH, status_code=204, responses=problems())
    async def sign_out(request: Request) -> Response:
        """End the session. Without one there is nothing to end, which is no error."""
        token = session_token(request)
        if token is not None:
            sessions.end(token)
        response = Response(status_code=204)
        response.delete_cookie(cookie_name(request), path=COOKIE_PATH, httponly=True, samesite="strict")
        return response

    return router
