"""A LiveKit server on free loopback ports: `python -m tools.servers.livekit`.

It prints `ws://KEY:SECRET@127.0.0.1:PORT`; key and secret are new each time. It listens on the loopback
interface only, and asks no other host for its address.
"""

import json
import secrets
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from tools.servers.keeper import keep
from tools.servers.process import free_port, running_process
from tools.setup.toolchain import ensure_livekit


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a LiveKit server, with its key and secret."""

    url: str
    api_key: str
    api_secret: str

    def __str__(self) -> str:
        scheme, _, rest = self.url.partition("://")
        return f"{scheme}://{self.api_key}:{self.api_secret}@{rest}"

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that connect `anamnesis` to it."""
        return {
            "LIVEKIT_URL": self.url,
            "LIVEKIT_API_KEY": self.api_key,
            "LIVEKIT_API_SECRET": self.api_secret,
        }

    @classmethod
    def parse(cls, text: str) -> "Address":
        """The reverse of `str`."""
        parts = urlsplit(text)
        return cls(
            f"{parts.scheme}://{parts.hostname}:{parts.port}", parts.username or "", parts.password or ""
        )


def new_address() -> Address:
    """A free port with a new key. A server can be started there, killed, and started again."""
    return Address(
        f"ws://127.0.0.1:{free_port()}",
        f"key{secrets.token_hex(6)}",
        secrets.token_hex(24),
    )


@contextmanager
def running_livekit(address: Address | None = None, webhooks: Sequence[str] = ()) -> Iterator[Address]:
    """A server during the body, which reports joining and leaving participants to `webhooks`."""
    address = address or new_address()
    with livekit_process(address, webhooks):
        yield address


@contextmanager
def livekit_process(address: Address, webhooks: Sequence[str] = ()) -> Iterator[subprocess.Popen[bytes]]:
    """The same, but yields the process, for tests that send it signals."""
    executable = ensure_livekit()
    with tempfile.TemporaryDirectory(prefix="anamnesis-livekit-", ignore_cleanup_errors=True) as folder:
        config = Path(folder, "livekit.yaml")
        config.touch(mode=0o600)
        config.write_text(json.dumps(_configuration(address, webhooks)))  # every JSON text is a YAML text
        with running_process(  # killed at the end, because on SIGTERM it would wait for its participants
            "LiveKit",
            [executable, "--config", config],
            folder=Path(folder),
            connect=partial(_connect, address.url),
            refusals=(httpx.HTTPError,),
            cwd=folder,
        ) as server:
            yield server


def _configuration(address: Address, webhooks: Sequence[str]) -> dict[str, object]:
    """The configuration file.

    ICE over TCP is off, because it would listen on every interface. A STUN server is named, because clients
    would otherwise be given public ones.
    """
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


def _connect(url: str) -> None:
    httpx.get(url.replace("ws://", "http://"), timeout=5, trust_env=False).raise_for_status()


@contextmanager
def _running() -> Iterator[str]:
    with running_livekit() as address:
        yield str(address)


if __name__ == "__main__":
    keep(_running)
