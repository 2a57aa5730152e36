"""A built wheel carries the configuration; an editable install reads the checkout's own."""

import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from tools.toolchain import CHECKOUT


def files_of_a_wheel(version: str, folder: Path) -> set[str]:
    """The names in a wheel of the project, built as `standard` or `editable`."""
    (wheel,) = WheelBuilder(str(CHECKOUT)).build(directory=str(folder), versions=[version])
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.mark.parametrize("packed", ["orchestrator/_config/default.toml", "orchestrator/errors.py"])
def test_a_wheel_carries_what_it_needs(packed: str, tmp_path: Path) -> None:
    assert packed in files_of_a_wheel("standard", tmp_path)


def test_a_wheel_carries_nothing_that_only_a_checkout_needs(tmp_path: Path) -> None:
    tops = {name.partition("/")[0] for name in files_of_a_wheel("standard", tmp_path)}

    assert tops == {"orchestrator", "agents", "memory_blocks", "anamnesis-0.1.0.dist-info"}


def test_an_editable_install_has_no_second_copy_of_the_configuration(tmp_path: Path) -> None:
    assert not [name for name in files_of_a_wheel("editable", tmp_path) if "_config" in name]
