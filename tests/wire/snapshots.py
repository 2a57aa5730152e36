"""The bytes of each sample, kept as hex.

`python -m tests.wire.snapshots` writes them again. Nothing else does: other bytes are another protocol.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from orchestrator.wire.codec import encode
from tests.wire.samples import ENVELOPES

PATH: Final = Path(__file__).with_name("snapshots.toml")
WIDTH: Final = 96


def kept() -> Mapping[str, bytes]:
    """The bytes of each sample when the snapshots were last written."""
    return {name: bytes.fromhex(digits) for name, digits in tomllib.loads(PATH.read_text()).items()}


def main() -> None:
    """Write the bytes of every sample, in lines that a diff can show."""
    PATH.write_text(
        "\n".join(f'"{name}" = """\n{_lines(encode(ENVELOPES[name]))}"""\n' for name in ENVELOPES)
    )


def _lines(data: bytes) -> str:
    digits = data.hex()
    return "".join(f"{digits[start : start + WIDTH]}\n" for start in range(0, len(digits), WIDTH))


if __name__ == "__main__":
    main()
