"""A built wheel contains all that a server needs; an editable install reads the files of the checkout."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from tests.support.commands import a_distribution
from tools.setup.toolchain import CHECKOUT

FOLDERS = ("orchestrator", "agents", "memory_blocks", "config")
FILES = ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "CHANGELOG.md", ".gitignore")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The packed part of the checkout, with a page that needs no build."""
    root = tmp_path / "checkout"
    page = root / "console" / "dist" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("<!doctype html>")
    for name in FOLDERS:
        (root / name).symlink_to(CHECKOUT / name)
    for name in FILES:
        shutil.copy(CHECKOUT / name, root)
    return root


def built(
    checkout: Path, builder: type[WheelBuilder | SdistBuilder] = WheelBuilder, version: str = "standard"
) -> Path:
    """Build a checkout: a wheel, `editable` or not, or a source distribution."""
    (file,) = builder(str(checkout)).build(directory=str(checkout.parent), versions=[version])
    return Path(file)


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_a_wheel_contains_what_it_needs_and_nothing_that_only_a_checkout_needs(checkout: Path) -> None:
    names = names_in(built(checkout))

    assert {
        "orchestrator/_config/default.toml",
        "orchestrator/_console/index.html",
        "orchestrator/errors.py",
        "anamnesis-0.1.0.dist-info/licenses/LICENSE",
    } <= names
    assert {name.partition("/")[0] for name in names} == {
        "orchestrator",
        "agents",
        "memory_blocks",
        "anamnesis-0.1.0.dist-info",
    }


@pytest.mark.parametrize("builder", [WheelBuilder, SdistBuilder])
def test_nothing_is_built_without_the_page(
    checkout: Path, builder: type[WheelBuilder | SdistBuilder]
) -> None:
    shutil.rmtree(checkout / "console")

    with pytest.raises(FileNotFoundError, match=r"the server would have no page.*make wheel"):
        built(checkout, builder)


def test_a_wheel_can_be_built_from_the_packed_sources_which_hold_the_page(checkout: Path) -> None:
    shutil.unpack_archive(built(checkout, SdistBuilder), checkout.parent / "unpacked", filter="data")
    (unpacked,) = (checkout.parent / "unpacked").iterdir()

    assert "orchestrator/_console/index.html" in names_in(built(unpacked))


@pytest.fixture
def installed(checkout: Path) -> Path:
    """A folder in which a wheel is installed."""
    folder = checkout.parent / "installed"
    shutil.unpack_archive(built(checkout), folder, "zip")
    return folder


def told_by(installed: Path, code: str) -> str:
    """The output of this code in an installed wheel, without a checkout nearby."""
    found = os.pathsep.join((str(installed), sysconfig.get_path("purelib")))
    python = [sys.executable, "-S", "-P", "-c", code]
    return subprocess.check_output(python, env={**os.environ, "PYTHONPATH": found}, text=True)


def test_the_orchestrator_of_a_wheel_finds_its_page(installed: Path) -> None:
    page = told_by(installed, "from orchestrator.api.routes import page; print(page.built_console())")

    assert Path(page.strip()) == installed / "orchestrator" / "_console"


def test_the_doctor_detects_a_wheel_that_another_package_has_overwritten(installed: Path) -> None:
    look = """from orchestrator.cli.maintain.doctor import collisions
for found in collisions(): print(found.status, found.says)"""
    before = told_by(installed, look)

    a_distribution(installed, "openai-agents", "agents")
    written_over = told_by(installed, look)
    shutil.rmtree(installed / "openai_agents-1.0.dist-info")
    (installed / "agents" / "__init__.py").unlink()
    uninstalled = told_by(installed, look)

    lost = "failed `agents` has changed since it was installed: agents/__init__.py"
    assert before == "ok no other distribution has a package with one of our names\n"
    assert written_over == f"{lost}; it is also in openai-agents.\n"
    assert uninstalled == f"{lost}.\n"


def test_an_editable_install_has_no_second_copy_of_what_it_reads_in_the_checkout(checkout: Path) -> None:
    shutil.rmtree(checkout / "console")

    names = names_in(built(checkout, version="editable"))

    assert not [name for name in names if "_config" in name or "_console" in name]
