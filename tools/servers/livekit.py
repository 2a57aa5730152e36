"""A LiveKit server on free loopback ports: `python -m tools.servers.livekit`.

It prints `ws://KEY:SECRET@127.0.0.1:PORT`, for the key and secret are made anew each time. It listens on no
other interface and asks no host outside for its address.
"""

import json
import secrets
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit

from tools.progress import SetupError
from tools.servers.keeper import free_port, keep
from tools.toolchain import ensure_livekit

SECONDS_TO_START = 60


@dataclass(frozen=True, slots=True)
class Address:
    """Where a LiveKit server is, and what it lets one in with."""

    url: str
    api_key: str
    api_secret: str

    def __str__(self) -> str:
        scheme, _, rest = self.url.partition("://")
        return f"{scheme}://{self.api_key}:{self.api_secret}@{rest}"

    @property
    def environment(self) -> dict[str, str]:
        """What tells `anamnesis` of it."""
        return {
            "LIVEKIT_URL": self.url,
            "LIVEKIT_API_KEY": self.api_key,
            "LIVEKIT_API_SECRET": self.api_secret,
        }

    @classmethod
    def parse(cls, text: str) -> "Address":
        """What `str` made of one."""
        parts = urlsplit(text)
        return cls(
            f"{parts.scheme}://{parts.hostname}:{parts.port}", parts.username or "", parts.password or ""
        )


def new_address() -> Address:
    """A free port with a key of its own; a server may be started there, killed, and started again."""
    return Address(
        f"ws://127.0.0.1:{free_port()}",
        f"key{secrets.token_hex(6)}",
        secrets.token_hex(24),
    )


@contextmanager
def running_livekit(address: Address | None = None, webhooks: Sequence[str] = ()) -> Iterator[Address]:
    """The address of a server that is up during the body; it tells `webhooks` who comes and goes."""
    address = address or new_address()
    with livekit_process(address, webhooks):
        yield address


@contextmanager
def livekit_process(address: Address, webhooks: Sequence[str] = ()) -> Iterator[subprocess.Popen[bytes]]:
    """The same by its process, for who wants to stop it in its tracks."""
    executable = ensure_livekit()
    with tempfile.TemporaryDirectory(prefix="anamnesis-livekit-", ignore_cleanup_errors=True) as folder:
        config, log = Path(folder, "livekit.yaml"), Path(folder, "log")
        config.touch(mode=0o600)
        config.write_text(json.dumps(_configuration(address, webhooks)))  # every JSON text is a YAML text
        with log.open("wb") as output:
            server = subprocess.Popen(
                [executable, "--config", config],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            _wait_until_it_answers(server, address, log)
            yield server
        finally:
            server.kill()  # nothing of it is kept, and it waits for participants when it is asked politely
            server.wait()


def _configuration(address: Address, webhooks: Sequence[str]) -> dict[str, object]:
    """ICE over TCP would listen on every interface, and without STUN servers clients get public ones."""
    configuration: dict[str, object] = {
        "port": urlsplit(address.url).port,
        "bind_addresses": ["127.0.0.1"],
        "keys": {address.api_key: address.api_secret},
        "logging": {"level": "warn"},
        "room": {"auto_create": False},
        "rtc": {
            "use_external_ip": False,
            "node_ip": "127.0.0.1",
            "udp_port": free_port(socket.SOCK_DGRAM),
            "tcp_port": 0,
            "enable_loopback_candidate": True,
            "interfaces": {"includes": ["lo"]},
            "stun_servers": ["127.0.0.1:3478"],
        },
    }
    if webhooks:
        configuration["webhook"] = {"api_key": address.api_key, "urls": list(webhooks)}
    return configuration


def _wait_until_it_answers(server: subprocess.Popen[bytes], address: Address, log: Path) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while True:
        try:
            urllib.request.urlopen(address.url.replace("ws://", "http://"), timeout=5).close()  # noqa: S310
            return
        except (URLError, OSError):
            if server.poll() is not None or time.monotonic() > deadline:
                said = log.read_text(errors="replace")
                raise SetupError(f"LiveKit did not start within {SECONDS_TO_START} s:\n{said}") from None
            time.sleep(0.05)


@contextmanager
def _running() -> Iterator[str]:
    with running_livekit() as address:
        yield str(address)


if __name__ == "__main__":
    keep(_running)
