"""Packs `config/` into a built wheel; an editable install goes on reading the checkout's own folder."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PackConfig(BuildHookInterface[Any]):
    """Plain settings would pack it into editable installs too, where the copy soon differs from it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Hatchling calls this with `standard` or `editable` before it gathers the files."""
        if version == "standard":
            build_data["force_include"]["config"] = "orchestrator/_config"
