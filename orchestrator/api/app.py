"""The HTTP application: the routes of `routes/` behind the security checks of `middleware.py`."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fastapi import Depends, FastAPI
from fastapi.openapi.utils import get_openapi

from orchestrator import __version__
from orchestrator.api.access.checking import AccessCheck
from orchestrator.api.access.oidc import OidcTokens
from orchestrator.api.access.pseudonyms import Pseudonyms
from orchestrator.api.access.rate_limits import RateLimits
from orchestrator.api.access.rules import rule_of
from orchestrator.api.answers import Problem
from orchestrator.api.authentication import Authentication
from orchestrator.api.middleware import SecurityMiddleware
from orchestrator.api.ports import ConversationServer, Memories, Resources, Rooms
from orchestrator.api.problems import add_error_handlers
from orchestrator.api.routes import (
    conversations,
    docs,
    health,
    livekit,
    messages,
    metrics,
    overview,
    page,
    safety_events,
    session,
    tool_uses,
    websocket,
)
from orchestrator.api.routes.memory import (
    archived_turns,
    blocks,
    explanations,
    exports,
    memories,
    retrievals,
    search,
    traces,
)
from orchestrator.inspection.live import TraceFeed

BODY_LIMIT: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class AppOptions:
    """How the application answers."""

    hosts: Iterable[str] = ()
    """The names it answers to besides those of the loopback."""
    origins: Iterable[str] = ()
    """The origins of other pages that may call the API with a key."""
    body_limit: int = BODY_LIMIT
    unread_seconds: float = 20
    """A client that leaves its frames unread for so long is disconnected."""
    requests_per_minute: int | None = None
    console: Path | None = None
    """The folder of the built page, if it is not the usual one."""


def create_app(
    orchestrator: ConversationServer,
    authentication: Authentication,
    options: AppOptions | None = None,
    *,
    rooms: Rooms | None = None,
    memory: Memories | None = None,
    resources: Resources | None = None,
    oidc: OidcTokens | None = None,
) -> FastAPI:
    """Build the application for one orchestrator.

    `rooms` are the LiveKit rooms, if LiveKit is configured. `memory` searches long-term memory. Without
    `resources`, nothing that is stored is served. `oidc` recognises the tokens of an issuer, if one is
    configured.
    """
    options = options or AppOptions()
    body_limit, per_minute = options.body_limit, options.requests_per_minute
    limits = RateLimits(per_minute) if per_minute else None
    access = AccessCheck(authentication, resources.store if resources else None, oidc, limits)
    app = FastAPI(
        title="Anamnesis",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        dependencies=[Depends(access)],
    )
    livekit_url = rooms.url if rooms else ""
    app.add_middleware(SecurityMiddleware, hosts=options.hosts, livekit=livekit_url, origins=options.origins)
    add_error_handlers(app)
    for router in (
        websocket.build_router(orchestrator, access, options.unread_seconds),
        session.build_router(authentication, body_limit),
        conversations.build_start(rooms, resources, body_limit),
        conversations.build_router(rooms),
        livekit.build_router(rooms, body_limit),
        search.build_router(memory, body_limit),
        health.build_router(orchestrator),
        metrics.build_router(),
        docs.build_router(app),
    ):
        app.include_router(router)
    if resources is not None:
        _add_resources(app, resources, authentication, access, body_limit)
    page.serve_page(app, options.console)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def _add_resources(
    app: FastAPI,
    resources: Resources,
    authentication: Authentication,
    access: AccessCheck,
    body_limit: int,
) -> None:
    """Add the routes of what is stored. The feed of live traces is closed when the server stops."""
    app.state.feed = TraceFeed(resources.store)
    pseudonyms = Pseudonyms(authentication.folder)
    for router in (
        conversations.build_resource(resources, pseudonyms, body_limit),
        messages.build_router(resources),
        blocks.build_router(resources, pseudonyms),
        archived_turns.build_router(resources),
        exports.build_router(resources, pseudonyms),  # before `/v1/traces/{trace_id}`
        traces.build_router(resources, pseudonyms, app.state.feed, access),
        explanations.build_router(resources),
        tool_uses.build_router(resources),
        safety_events.build_router(resources),
        memories.build_router(resources, pseudonyms, body_limit),
        retrievals.build_router(resources, pseudonyms),
        overview.build_router(resources),
    ):
        app.include_router(router)


def _openapi(app: FastAPI) -> dict[str, Any]:
    """The description of the API, made once."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
        parts = schema.setdefault("components", {})
        parts.setdefault("schemas", {})["Problem"] = Problem.model_json_schema()
        parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"key": []}]
        for path, methods in schema["paths"].items():
            for method, operation in methods.items():
                rule = rule_of(method.upper(), path)
                if rule is not None and rule.is_public:
                    operation["security"] = []
                elif rule is not None and rule.from_this_machine:
                    operation["security"] = [{}, {"key": []}]
        app.openapi_schema = schema
    return app.openapi_schema
