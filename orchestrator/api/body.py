"""Reads the body of a request, within a limit."""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from orchestrator.api import strict_json
from orchestrator.api.problems import from_validation
from orchestrator.errors import BODY_TOO_LARGE, AnamnesisError

M = TypeVar("M", bound=BaseModel)


def read_json(body: bytes, model: type[M]) -> M:
    """Read a body as JSON of that model. What is wrong with it is refused by name, without quoting it."""
    try:
        return model.model_validate(strict_json.parse(body))
    except ValidationError as error:
        problem = from_validation(error)
    raise problem  # outside the handler: pydantic's error holds the body


async def read_body(request: Request, limit: int) -> bytes:
    """Read the whole body; more than `limit` bytes are refused as soon as they have arrived."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise AnamnesisError(BODY_TOO_LARGE, most=limit)
    return bytes(body)


def request_body(model: type[BaseModel], *, required: bool = True) -> dict[str, Any]:
    """The body of a route for OpenAPI, because our routes read it themselves, strictly."""
    content = {"application/json": {"schema": model.model_json_schema()}}
    return {"requestBody": {"required": required, "content": content}}
