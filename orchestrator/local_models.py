"""Says at start where messages go, and which model server of this machine could be used."""

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Final

import httpx

from orchestrator.settings import Settings

PORTS: Final[Mapping[str, int]] = {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080, "vLLM": 8000}
"""The usual ports of model servers."""

_SECONDS: Final = 0.5
_MAX_BYTES: Final = 200_000


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A model server on this machine, and the first model that it lists."""

    name: str
    endpoint: str
    model: str


NO_MODEL: Final = (
    "No language model answers: I ask guided questions, remember what you tell me and watch for "
    "emergencies; `anamnesis serve --model NAME` connects one."
)
"""What ServerInfo, the page and `serve` say if no model is configured."""

MODEL_AWAY: Final = (
    "The language model {name} does not answer now: I ask guided questions, remember what you tell me and "
    "watch for emergencies until it does."
)
"""What ServerInfo and the page say while a model that is configured does not answer."""


async def where_messages_go(settings: Settings) -> str:
    """What `serve` says: where messages are sent, to be answered and to be searched."""
    chosen, embeds = settings.embeddings, ""
    if chosen.model == "endpoint":
        embeds = f" They are also sent to the embedding model {chosen.endpoint_model} at {chosen.endpoint}."
    return await _who_answers(settings) + embeds


async def _who_answers(settings: Settings) -> str:
    """The model that messages are sent to, else that there is none, and one to be used."""
    if settings.letta.base_url:
        letta = settings.letta
        models = " and ".join(dict.fromkeys(filter(None, (letta.model, letta.extractor_model))))
        return (
            f"Messages are sent to the Letta server at {letta.base_url}, and by it to {models} (letta.model)."
        )
    if settings.chat.model:
        return f"Messages are sent to the model {settings.chat.model} at {settings.chat.endpoint}."
    if (server := await find_server()) is None:
        return NO_MODEL
    command = f"anamnesis serve --model {quote(server.model)} --endpoint {server.endpoint}"
    return f"{NO_MODEL} {server.name} answers on this machine: `{command}` would use it."


async def find_server(ports: Mapping[str, int] = PORTS) -> LocalServer | None:
    """The first server on these ports of this machine that lists a model. It is asked nothing else."""
    async with httpx.AsyncClient(trust_env=False, timeout=_SECONDS) as http:
        found = await asyncio.gather(*(_ask(http, name, port) for name, port in ports.items()))
    return next((server for server in found if server is not None), None)


def _is_open(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_SECONDS):
            return True
    except OSError:
        return False


async def _ask(http: httpx.AsyncClient, name: str, port: int) -> LocalServer | None:
    if not await asyncio.to_thread(_is_open, port):
        return None
    endpoint = f"http://127.0.0.1:{port}/v1"
    try:
        async with asyncio.timeout(_SECONDS):
            response = await http.get(f"{endpoint}/models")
            listed = response.json() if response.is_success and len(response.content) < _MAX_BYTES else None
    except (httpx.HTTPError, ValueError, RecursionError, TimeoutError):
        return None
    data = listed.get("data") if isinstance(listed, dict) else None
    first = data[0] if isinstance(data, list) and data else None
    model = first.get("id") if isinstance(first, dict) else None
    usable = isinstance(model, str) and model.isprintable() and 0 < len(model) < 200
    return LocalServer(name, endpoint, model) if usable and isinstance(model, str) else None
