"""`/`: the files of the chat page."""

from pathlib import Path
from typing import Final

from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from starlette.staticfiles import StaticFiles

NOT_BUILT: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Anamnesis</title>
<h1>Anamnesis is running</h1>
<p>The chat page has not been built. In a checkout, <code>make run</code> builds it.
<p><code>anamnesis chat</code> works in a terminal; <a href="/health">/health</a> shows which parts work.
</html>
"""


def serve_page(app: FastAPI, folder: Path | None = None) -> None:
    """Serve the page's files from `folder`, by default from where the build puts them.

    It is mounted on the application, not on a router, because it answers every path that no route has.
    """
    files = folder or built_console()
    if files is not None:
        app.mount("/", StaticFiles(directory=files, html=True))
        return

    @app.api_route("/", methods=["GET", "HEAD"])
    async def explain() -> HTMLResponse:
        return HTMLResponse(NOT_BUILT)


def built_console() -> Path | None:
    """The folder of the built page: in an installed wheel, else in the checkout; None if it was not built."""
    package = Path(__file__).parents[2]
    folders = (package / "_console", package.parent / "console" / "dist")
    return next((folder for folder in folders if (folder / "index.html").is_file()), None)
