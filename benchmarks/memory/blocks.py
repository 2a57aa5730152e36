"""The cost of the blocks: validating, rotating and rendering a full history, and writing all four blocks.

Each is compared with bare code that handles the same bytes. Both run alternately in short rounds, so that
other work on the machine slows both alike.
"""

import gc
import json
import sqlite3
import tempfile
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from time import perf_counter

from memory_blocks.edits import complete_turn
from memory_blocks.ledger.ledger import Ledger, ReadResult
from memory_blocks.models import Conversation, ConversationHistory, Label
from memory_blocks.rotation import rotate
from orchestrator.ops.clock import SystemClock
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.wire.ids import RandomIds
from tests.support.builders import START, a_completed_turn, a_history, a_turn

ROUNDS = 60
CONVERSATION = Conversation("conv_bench", "bench", START)
RANDOM = Random(7)
WORDS = ["".join(RANDOM.choices("etaoinshrdlu", k=RANDOM.randint(1, 9))) for _ in range(2_000)]


def random_text(characters: int) -> str:
    """Random words, about as hard to compress as what people write."""
    return " ".join(RANDOM.choices(WORDS, k=characters // 4))[:characters]


def a_full_history() -> ConversationHistory:
    """Twenty turns with almost 32,000 characters."""
    empty = len(a_history([a_turn(number, "", "") for number in range(1, 21)]).text)
    each = (32_000 - empty) // 40
    return a_history([a_turn(number, random_text(each), random_text(each)) for number in range(1, 21)])


def rotate_history(text: str) -> str:
    """Parse, validate, rotate and serialise a history."""
    return rotate(ConversationHistory.model_validate_json(text)).kept.text


def parse_json(text: str) -> str:
    """Parse and serialise the same text with `json` alone."""
    return json.dumps(json.loads(text))


def measure_alternately(*works: Callable[[], object]) -> list[float]:
    """The total seconds of each, over all rounds but the first."""
    seconds = [0.0] * len(works)
    gc.disable()
    for round_number in range(ROUNDS + 1):
        for index, work in enumerate(works):
            started = perf_counter()
            work()
            seconds[index] += (perf_counter() - started) * (round_number > 0)
    gc.enable()
    return seconds


class Writer:
    """A conversation whose blocks are written turn by turn."""

    def __init__(self, path: Path) -> None:
        self.ledger = Ledger(SystemClock())
        self.messages = [random_text(330) for _ in range(64)]
        self.store = Store.open(
            f"sqlite:///{path}", clock=SystemClock(), ids=RandomIds(), create=True, connections=1
        )
        self.store.write_now(lambda tx: tx.conversations.create("bench", id=CONVERSATION.id))
        self.reading: ReadResult = self.store.write_now(
            lambda tx: self.ledger.read(SqlBlockStore(tx.blocks), CONVERSATION, actor="bench")
        )

    def edit(self) -> None:
        """Compute the blocks after the next turn."""
        number = self.reading.blocks.next_turn
        message, answer = self.messages[number % 64], self.messages[number * 7 % 64]
        turn = a_completed_turn(number, message=message, answer=answer)
        self.edited = complete_turn(self.reading.blocks, turn, START + timedelta(minutes=number, seconds=30))

    def write(self) -> None:
        """Check, rotate and write the computed blocks, with receipts for their traces, in one commit."""

        def work(tx: Transaction) -> None:
            number = self.reading.blocks.next_turn
            self.reading = self.ledger.write(
                SqlBlockStore(tx.blocks), CONVERSATION, self.reading, self.edited, actor="bench", turn=number
            )

        self.store.write_now(work)

    def texts(self) -> list[tuple[str, str]]:
        """The current texts of the four blocks."""
        return [(label.value, self.reading.stored[label].text) for label in Label]

    def bytes_per_revision(self) -> float:
        """How many bytes of revisions are kept per turn."""

        def read_size(tx: Transaction) -> int:
            packed = tx.unit.connection.execute("SELECT sum(length(packed)) FROM block_revisions").fetchone()
            return int(packed[0])

        return self.store.read_now(read_size) / (self.reading.blocks.next_turn - 1)


def upsert(file: sqlite3.Connection, texts: Callable[[], list[tuple[str, str]]]) -> None:
    """Replace the four texts in one commit."""
    file.execute("BEGIN IMMEDIATE")
    for label, text in texts():
        file.execute(
            "INSERT INTO bare VALUES (?, ?) ON CONFLICT (label) DO UPDATE SET value = excluded.value",
            (label, text),
        )
    file.execute("COMMIT")


def main() -> None:
    """Print both ratios."""
    text = a_full_history().text
    ours, plain = measure_alternately(partial(rotate_history, text), partial(parse_json, text))
    print(
        f"  a history of {len(text):,} characters: parse, validate, rotate and serialise"
        f" {ours / ROUNDS * 1e6:,.0f} µs, json {plain / ROUNDS * 1e6:,.0f} µs: {ours / plain:.1f} times"
    )
    with tempfile.TemporaryDirectory() as folder:
        writer = Writer(Path(folder) / "blocks.db")
        for _ in range(30):
            writer.edit()
            writer.write()
        file = sqlite3.connect(Path(folder) / "bare.db", isolation_level=None)
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA synchronous = FULL")
        file.execute("CREATE TABLE bare (label TEXT PRIMARY KEY, value TEXT NOT NULL)")
        editing, ours, plain = measure_alternately(
            writer.edit, writer.write, partial(upsert, file, writer.texts)
        )
        size = sum(len(text) for _, text in writer.texts())
        print(
            f"  a turn's four blocks, {size:,} characters: edited in {editing / ROUNDS * 1e6:,.0f} µs;"
            f" whole write {ours / ROUNDS * 1e6:,.0f} µs, bare upsert {plain / ROUNDS * 1e6:,.0f} µs:"
            f" {ours / plain:.1f} times"
        )
        print(f"  revisions kept per turn: {writer.bytes_per_revision():,.0f} bytes")
        file.close()
        writer.store.close_now()


if __name__ == "__main__":
    main()
