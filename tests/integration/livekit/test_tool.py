"""LiveKit on the command line: `make livekit`, the findings of `doctor`, and when the library is loaded."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from tests.support.commands import served
from tests.support.protocol_client import TIMEOUT
from tools.servers.livekit import Address
from tools.setup.toolchain import CHECKOUT


async def test_it_serves_through_livekit_until_it_is_stopped(tmp_path: Path) -> None:
    ended = await served("tools.livekit", "--livekit", seconds=TIMEOUT, ANAMNESIS_DATA_DIR=str(tmp_path))

    assert ended.last["isFinal"]
    assert ended.codes == (0, 0)


@pytest.mark.parametrize("secret_is_right", [True, False], ids=["right", "wrong"])
async def test_the_doctor_says_whether_livekit_accepts_our_key(
    tmp_path: Path, livekit: Address, secret_is_right: bool
) -> None:
    secret = livekit.api_secret if secret_is_right else "another secret, long enough to sign with"
    keys = {"LIVEKIT_URL": livekit.url, "LIVEKIT_API_KEY": livekit.api_key, "LIVEKIT_API_SECRET": secret}
    doctor = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "orchestrator", "--data", str(tmp_path), "doctor", "--json"),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, **keys},
        cwd=CHECKOUT,
    )

    result = (await doctor.communicate())[0].decode()

    (found,) = [finding for finding in json.loads(result)["findings"] if finding["name"] == "livekit"]
    assert found["status"] == ("ok" if secret_is_right else "failed")
    assert secret not in result


async def test_the_sdk_is_imported_only_if_livekit_is_configured() -> None:
    modules = "orchestrator.wiring, orchestrator.cli.serve, orchestrator.api.app, orchestrator.client.connect"
    script = f"import sys, {modules}; sys.exit('livekit' in sys.modules)"

    loading = await asyncio.create_subprocess_exec(sys.executable, "-c", script, cwd=CHECKOUT)

    assert await loading.wait() == 0
