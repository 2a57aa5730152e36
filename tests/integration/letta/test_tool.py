"""`make letta`: a server that uses Letta, until it is stopped."""

import re
import socket
from pathlib import Path

import pytest

from tests.support.commands import Served, served
from tests.support.orchestrators import a_store
from tools.servers.letta import LETTA_EMBEDDING, LETTA_MODEL, SECONDS_TO_START, Address

pytestmark = pytest.mark.timeout(900)


async def over_letta(folder: Path, **result: str) -> tuple[Served, dict[str, str]]:
    """One answer of a server that the tool started, and the stored name of the agent that gave it."""
    ended = await served(
        "tools.letta --letta-port 0",
        seconds=SECONDS_TO_START,
        ANAMNESIS_DATA_DIR=str(folder),
        ANAMNESIS_LETTA_SYNC_SECONDS="60",
        ANAMNESIS_BRAIN_REPLY_SECONDS="60",
        **result,
    )
    store = a_store(f"sqlite:///{folder / 'anamnesis.db'}")
    kept = store.read_now(lambda tx: {pair.key: pair.value for pair in tx.meta.of(ended.last["previousId"])})
    store.close_now()
    return ended, kept


async def test_it_serves_over_a_running_server_until_it_is_stopped(
    letta: Address, tag: str, tmp_path: Path
) -> None:
    ended, kept = await over_letta(
        tmp_path,
        LETTA_BASE_URL=letta.base_url,
        ANAMNESIS_LETTA_MODEL=LETTA_MODEL,
        ANAMNESIS_LETTA_EMBEDDING=LETTA_EMBEDDING,
        ANAMNESIS_LETTA_TAG=tag,
    )

    assert ended.codes == (0, 0)
    assert "Letta listens" not in ended.printed
    assert kept["model.asked"] == "2"
    assert "model.stood_in" not in kept


@pytest.mark.soak
async def test_it_starts_its_own_server_and_stops_it_at_the_end(tmp_path: Path) -> None:
    ended, kept = await over_letta(tmp_path, LETTA_BASE_URL="")

    assert ended.codes == (0, 0)
    assert kept["model.asked"] == "2"
    (result,) = re.findall(r"Letta listens at http://127.0.0.1:(\d+), its models at .*:(\d+)/", ended.printed)
    for port in result:
        with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", int(port))):
            pass
