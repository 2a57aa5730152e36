"""A build hook of hatchling: packs `config/` and the built page into wheels and source distributions."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = "console/dist"


class Pack(BuildHookInterface[Any]):
    """Adds the files, but not to an editable install: that reads them from the checkout itself.

    `force-include` in pyproject.toml would copy them there too, and the copies would soon be out of date.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it collects the files; `version` is `standard` or `editable`."""
        if version == "editable":
            return
        if not Path(self.root, PAGE, "index.html").is_file():
            raise FileNotFoundError(
                f"{PAGE} does not exist, so the server would have no page. "
                "Run `make wheel`, which builds both, or `python3 -m tools.console`, which builds the page."
            )
        targets = {"config": "orchestrator/_config", PAGE: "orchestrator/_console"}
        build_data["force_include"].update(targets if self.target_name == "wheel" else {PAGE: PAGE})
