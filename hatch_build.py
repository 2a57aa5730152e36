"""Packs `config/` and the built page into what is installed or handed on; a checkout reads its own."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = "console/dist"


class Pack(BuildHookInterface[Any]):
    """Plain settings would pack them into editable installs too, where the copies soon differ from them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Hatchling calls this with `standard` or `editable` before it gathers the files."""
        if version == "editable":
            return
        if not Path(self.root, PAGE, "index.html").is_file():
            raise FileNotFoundError(
                f"{PAGE} is not there, and the house would have no page. "
                "`make wheel` builds both; `python3 -m tools.console` builds the page alone."
            )
        places = {"config": "orchestrator/_config", PAGE: "orchestrator/_console"}
        build_data["force_include"].update(places if self.target_name == "wheel" else {PAGE: PAGE})
