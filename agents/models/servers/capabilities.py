"""What a model at an endpoint accepts: learned from its refusals, and kept as long as the process runs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Final

from agents.errors import ModelTrouble
from agents.models.replies import Schema
from agents.models.servers.http import encoded

_REFUSES_FIELDS: Final = ("http_400", "http_404", "http_415", "http_422", "http_500", "http_501")
"""Refusals that may be about a field of the request. Of 404 and 500 only those that name the field."""
_ABOUT_FIELDS: Final = ("http_400", "http_415", "http_422", "http_501")

_FORM_FIELDS: Final = ("response_format",)


class ReplyForm(IntEnum):
    """How an endpoint is asked for a structured reply, the strictest way first."""

    JSON_SCHEMA = 0
    JSON_OBJECT = 1
    TEXT = 2


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The optional parts of a request that a model accepts, as far as is known.

    `tokens_field` is the name of the limit on the reply's tokens; empty if the model takes none.
    """

    form: ReplyForm = ReplyForm.JSON_SCHEMA
    tokens_field: str = "max_tokens"
    takes_temperature: bool = True
    takes_stream_options: bool = True
    takes_tools: bool = True

    def options(self, temperature: float, max_tokens: int) -> dict[str, Any]:
        """The fields of a request that limit and steer the reply."""
        limits: dict[str, Any] = {self.tokens_field: max_tokens} if self.tokens_field else {}
        return limits | ({"temperature": temperature} if self.takes_temperature else {})

    def response_format(self, schema: Schema) -> dict[str, Any]:
        """The field of a request that asks for a structured reply; empty if only the text asks for it."""
        match self.form:
            case ReplyForm.JSON_SCHEMA:
                wanted = {"name": schema.name, "strict": True, "schema": schema.schema}
                return {"response_format": {"type": "json_schema", "json_schema": wanted}}
            case ReplyForm.JSON_OBJECT:
                return {"response_format": {"type": "json_object"}}
            case _:
                return {}

    def described(self, schema: Schema) -> str:
        """The schema as a part of the instructions, if the request itself does not carry it."""
        if self.form is ReplyForm.JSON_SCHEMA:
            return ""
        return f"\n\nThe reply is one JSON object of this JSON Schema:\n{encoded(dict(schema.schema))}"

    def after(self, refusal: ModelTrouble, body: Mapping[str, Any]) -> "Capabilities | None":
        """What the model may accept after it refused this request; None if nothing can be left out.

        A refusal that names a field is about that field. One that names none may be about the form of the
        reply, which not every endpoint knows.
        """
        if refusal.kind not in _REFUSES_FIELDS:
            return None
        named = refusal.named
        if self.tokens_field in named and self.tokens_field in body:
            other = "max_completion_tokens" if self.tokens_field == "max_tokens" else ""
            return replace(self, tokens_field=other)
        if "temperature" in named and self.takes_temperature:
            return replace(self, takes_temperature=False)
        if "stream_options" in named and self.takes_stream_options:
            return replace(self, takes_stream_options=False)
        if "tools" in named and self.takes_tools:
            return replace(self, takes_tools=False)
        is_about_form = bool(named.intersection(_FORM_FIELDS)) or refusal.kind in _ABOUT_FIELDS
        if "response_format" in body and is_about_form:
            return replace(self, form=ReplyForm(self.form + 1))
        return None
