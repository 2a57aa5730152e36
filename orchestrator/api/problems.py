"""Our errors as HTTP says them: RFC 9457, from the same table as the wire's."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from starlette.responses import Response

from orchestrator.errors import INVALID_FIELD, MISSING_FIELD, AnamnesisError


def as_response(error: AnamnesisError) -> Response:
    """The error as `application/problem+json`, with its facts beside the members that every problem has."""
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
    if problem.http == 413:
        headers["Connection"] = "close"  # or the rest of what is too large would have to be read
    if problem.http == 426:
        headers["Upgrade"] = "websocket"
    if "seconds" in error.facts:
        headers["Retry-After"] = str(error.facts["seconds"])
    return Response(json.dumps(members), problem.http, headers, "application/problem+json")


def of_validation(refused: ValidationError) -> AnamnesisError:
    """What a model did not accept: the first place and its rule, never the value."""
    return of_departures(refused.errors(include_input=False, include_url=False, include_context=False))


def of_departures(departures: Sequence[Mapping[str, Any]]) -> AnamnesisError:
    """The same, of pydantic's list. A field that is not ours is not named: its name is the sender's text."""
    first = departures[0]
    field = ".".join(str(part) for part in first["loc"]) or "body"
    match first["type"]:
        case "missing":
            return AnamnesisError(MISSING_FIELD, field=field)
        case "extra_forbidden":
            return AnamnesisError(INVALID_FIELD, field="body", rule="there is a field that is not known")
    return AnamnesisError(INVALID_FIELD, field=field, rule=first["msg"])
