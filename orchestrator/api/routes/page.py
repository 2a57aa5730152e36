"""`/`: the files of the web page, and the addresses of its views."""

from pathlib import Path
from typing import Final

from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

VIEWS: Final = frozenset(
    {"chat", "why", "retrievals", "memory", "traces", "overview", "turns", "rotations", "alarms"}
)
"""How the addresses of the page's views begin. The page itself reads the rest of such an address."""

NOT_BUILT: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Anamnesis</title>
<h1>Anamnesis is running</h1>
<p>The chat page has not been built. In a checkout, <code>make run</code> builds it.
<p><code>anamnesis chat</code> works in a terminal; <a href="/health">/health</a> shows which parts work.
</html>
"""


class PageFiles(StaticFiles):
    """The files of the page. The address of a view, such as `/memory`, gets the page as well."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Respond with a file, with the page for the address of a view, or with 404."""
        is_view = path.split("/", 1)[0] in VIEWS
        return await super().get_response("index.html" if is_view else path, scope)


def serve_page(app: FastAPI, folder: Path | None = None) -> None:
    """Serve the page's files from `folder`, by default from where the build puts them.

    It is mounted on the application, not on a router, because it answers every path that no route has.
    """
    files = folder or built_console()
    if files is not None:
        app.mount("/", PageFiles(directory=files, html=True))
        return

    @app.api_route("/", methods=["GET", "HEAD"])
    async def explain() -> HTMLResponse:
        return HTMLResponse(NOT_BUILT)


def built_console() -> Path | None:
    """The folder of the built page: in an installed wheel, else in the checkout; None if it was not built."""
    package = Path(__file__).parents[2]
    folders = (package / "_console", package.parent / "console" / "dist")
    return next((folder for folder in folders if (folder / "index.html").is_file()), None)
