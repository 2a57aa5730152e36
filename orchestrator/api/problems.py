"""Errors as HTTP responses: RFC 9457 problems, made from the table in `orchestrator/errors.py`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from orchestrator.errors import (
    INTERNAL,
    INVALID_FIELD,
    METHOD_NOT_ALLOWED,
    MISSING_FIELD,
    PATH_NOT_FOUND,
    AnamnesisError,
)


def to_response(error: AnamnesisError) -> Response:
    """Build the `application/problem+json` response. The error's facts are additional members."""
    problem = error.problem
    members = {
        **error.facts,
        "type": f"/problems/{problem.name}",
        "title": problem.name.replace("_", " ").capitalize(),
        "status": problem.http,
        "detail": str(error),
        "code": problem.number,
        "recoverable": problem.recoverable,
    }
    headers = {}
    if problem.http == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if problem.http in (408, 413):
        headers["Connection"] = "close"  # otherwise the server would have to read the rest of the request
    if problem.http == 426:
        headers["Upgrade"] = "websocket"
    if "seconds" in error.facts:
        headers["Retry-After"] = str(error.facts["seconds"])
    return Response(json.dumps(members), problem.http, headers, "application/problem+json")


def from_validation(error: ValidationError) -> AnamnesisError:
    """Name the first field that a model refused, and the rule; never the value."""
    return _from_pydantic(error.errors(include_input=False, include_url=False, include_context=False))


def add_error_handlers(app: FastAPI) -> None:
    """Answer what the router or a parameter's type refuses with problems, too."""
    app.add_exception_handler(HTTPException, _answer_router)
    app.add_exception_handler(RequestValidationError, _answer_validation)


def _from_pydantic(errors: Sequence[Mapping[str, Any]]) -> AnamnesisError:
    """An unknown field is not named, because its name is text from the sender."""
    first = errors[0]
    field = ".".join(str(part) for part in first["loc"]) or "body"
    match first["type"]:
        case "missing":
            return AnamnesisError(MISSING_FIELD, field=field)
        case "extra_forbidden":
            return AnamnesisError(INVALID_FIELD, field="body", rule="it has an unknown field")
    return AnamnesisError(INVALID_FIELD, field=field, rule=first["msg"])


async def _answer_router(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    problem = {404: PATH_NOT_FOUND, 405: METHOD_NOT_ALLOWED}.get(status, INTERNAL)
    response = to_response(AnamnesisError(problem))
    response.headers.update(getattr(error, "headers", None) or {})
    return response


async def _answer_validation(_: Request, error: Exception) -> Response:
    return to_response(_from_pydantic(error.errors() if isinstance(error, RequestValidationError) else []))
