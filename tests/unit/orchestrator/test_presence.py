"""A process counts as alive until it ends, however it ends."""

import signal
import subprocess
import sys
from pathlib import Path

from orchestrator.presence import Presence

HOLD = """
import sys, time
from pathlib import Path
from orchestrator.presence import Presence
presence = Presence(Path(sys.argv[1]), "proc_other")
print("here", flush=True)
time.sleep(60)
"""


def test_a_process_that_was_killed_is_gone(tmp_path: Path) -> None:
    ours = Presence(tmp_path, "proc_ours")
    with subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        other.stdout.readline()

        assert not ours.is_gone("proc_other")
        other.send_signal(signal.SIGKILL)
        other.wait()

        assert ours.is_gone("proc_other")
        assert ours.is_gone("proc_other")
    ours.leave()


def test_a_process_is_alive_to_itself_and_others_until_it_leaves(tmp_path: Path) -> None:
    ours, other = Presence(tmp_path, "proc_ours"), Presence(tmp_path, "proc_other")

    assert not ours.is_gone("proc_ours")
    assert not other.is_gone("proc_ours")
    ours.leave()
    assert other.is_gone("proc_ours")
    assert [each.name for each in tmp_path.iterdir()] == ["proc_other"]
    other.leave()


def test_a_name_cannot_refer_to_a_file_outside_the_folder(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("kept")
    ours = Presence(tmp_path / "present", "proc_ours")

    assert ours.is_gone("../outside")
    assert outside.read_text() == "kept"
    ours.leave()
