"""`/docs` and `/openapi.json`: the description of the API, as a page without scripts and for programs."""

from collections.abc import Iterator
from html import escape
from typing import Any, Final

from fastapi import APIRouter, FastAPI
from fastapi.responses import HTMLResponse, JSONResponse

_PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Anamnesis API</title>
<h1>Anamnesis API</h1>
<p>Send your key as <code>Authorization: Bearer KEY</code>; <code>anamnesis keys create</code> makes one.
Staff that reads somebody's memory says why in the header <code>Anamnesis-Reason</code>.
<p><a href="/openapi.json">openapi.json</a> describes the same for programs.
{operations}
</html>
"""


def build_router(app: FastAPI) -> APIRouter:
    """Build the routes. Anyone may read them: they describe no data."""
    router = APIRouter(include_in_schema=False)

    @router.get("/openapi.json")
    async def show_schema() -> JSONResponse:
        return JSONResponse(app.openapi())

    @router.get("/docs")
    async def show_page() -> HTMLResponse:
        return HTMLResponse(_PAGE.format(operations="\n".join(_operations(app.openapi()))))

    return router


def _operations(schema: dict[str, Any]) -> Iterator[str]:
    """Each operation with its parameters and answers, under the name of its resource."""
    groups: dict[str, list[str]] = {}
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            groups.setdefault(operation.get("tags", ["other"])[0], []).append(
                _operation(method.upper(), path, operation)
            )
    for name, operations in groups.items():
        yield f"<h2>{escape(name.capitalize())}</h2>"
        yield from operations


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    parameters = "".join(_parameter(each) for each in operation.get("parameters", ()))
    answers = ", ".join(escape(status) for status in operation["responses"])
    body = "<p>It has a JSON body; the schema is in openapi.json." if "requestBody" in operation else ""
    return (
        f"<details><summary><code>{escape(method)} {escape(path)}</code></summary>"
        f"<p>{escape(operation.get('description', ''))}{body}"
        f"<ul>{parameters}</ul><p>Answers: {answers}</details>"
    )


def _parameter(parameter: dict[str, Any]) -> str:
    needed = ", required" if parameter.get("required") else ""
    said = escape(parameter.get("description", ""))
    return f"<li><code>{escape(parameter['name'])}</code> ({escape(parameter['in'])}{needed}) {said}"
