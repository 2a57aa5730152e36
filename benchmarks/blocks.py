"""What the blocks cost: a full history through validation, rotation and render, and a whole write.

Each is measured beside something bare that handles the same bytes, in short turns, so that a processor or a
disk that is busy elsewhere slows both alike.
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
from memory_blocks.ledger import Ledger, Reading
from memory_blocks.models import Conversation, ConversationHistory, Label
from memory_blocks.rotation import rotate
from orchestrator.clock import SystemClock
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.database import Store, Transaction
from orchestrator.wire.ids import RandomIds
from tests.builders import START, a_completed_turn, a_history, a_turn

ROUNDS = 60
HERE = Conversation("conv_bench", "bench", START)
CHANCE = Random(7)
WORDS = ["".join(CHANCE.choices("etaoinshrdlu", k=CHANCE.randint(1, 9))) for _ in range(2_000)]


def something(characters: int) -> str:
    """Words by chance: about as hard to pack as what people say."""
    return " ".join(CHANCE.choices(WORDS, k=characters // 4))[:characters]


def a_full_history() -> ConversationHistory:
    """Twenty turns, together as near to 32,000 characters as they come."""
    plain = len(a_history([a_turn(number, "", "") for number in range(1, 21)]).text)
    each = (32_000 - plain) // 40
    return a_history([a_turn(number, something(each), something(each)) for number in range(1, 21)])


def rotated(text: str) -> str:
    """Read, validate, rotate and write a history."""
    return rotate(ConversationHistory.model_validate_json(text)).kept.text


def bare(text: str) -> str:
    """Read and write the same text."""
    return json.dumps(json.loads(text))


def in_turns(*works: Callable[[], object]) -> list[float]:
    """The seconds that each takes, added up over all rounds but the first."""
    spent = [0.0] * len(works)
    gc.disable()
    for round_ in range(ROUNDS + 1):
        for at, work in enumerate(works):
            began = perf_counter()
            work()
            spent[at] += (perf_counter() - began) * (round_ > 0)
    gc.enable()
    return spent


class Writer:
    """A conversation that is written turn by turn."""

    def __init__(self, path: Path) -> None:
        self.ledger = Ledger(SystemClock())
        self.to_say = [something(330) for _ in range(64)]
        self.store = Store.open(
            f"sqlite:///{path}", clock=SystemClock(), ids=RandomIds(), create=True, connections=1
        )
        self.store.write_now(lambda tx: tx.conversations.create("bench", id=HERE.id))
        self.reading: Reading = self.store.write_now(
            lambda tx: self.ledger.read(SqlBlockStore(tx.blocks), HERE, actor="bench")
        )

    def make(self) -> None:
        """The next blocks: what a turn makes of them."""
        number = self.reading.blocks.next_turn
        message, answer = self.to_say[number % 64], self.to_say[number * 7 % 64]
        turn = a_completed_turn(number, message=message, answer=answer)
        self.next = complete_turn(self.reading.blocks, turn, START + timedelta(minutes=number, seconds=30))

    def write(self) -> None:
        """The blocks that were made: checked, rotated, written and traced by receipts, in one commit."""

        def work(tx: Transaction) -> None:
            number = self.reading.blocks.next_turn
            self.reading = self.ledger.write(
                SqlBlockStore(tx.blocks), HERE, self.reading, self.next, actor="bench", turn=number
            )

        self.store.write_now(work)

    def texts(self) -> list[tuple[str, str]]:
        """The four texts as they now stand."""
        return [(label.value, self.reading.stored[label].text) for label in Label]

    def bytes_per_revision(self) -> float:
        """What is kept of a turn in the history of the blocks."""

        def ask(tx: Transaction) -> int:
            packed = tx.unit.connection.execute("SELECT sum(length(packed)) FROM block_revisions").fetchone()
            return int(packed[0])

        return self.store.read_now(ask) / (self.reading.blocks.next_turn - 1)


def upsert(file: sqlite3.Connection, texts: Callable[[], list[tuple[str, str]]]) -> None:
    """The four texts, each over the one before, in one commit."""
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
    ours, plain = in_turns(partial(rotated, text), partial(bare, text))
    print(
        f"  a history of {len(text):,} characters: read, validate, rotate and write"
        f" {ours / ROUNDS * 1e6:,.0f} µs, json {plain / ROUNDS * 1e6:,.0f} µs: {ours / plain:.1f} times"
    )
    with tempfile.TemporaryDirectory() as folder:
        writer = Writer(Path(folder) / "blocks.db")
        for _ in range(30):
            writer.make()
            writer.write()
        file = sqlite3.connect(Path(folder) / "bare.db", isolation_level=None)
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA synchronous = FULL")
        file.execute("CREATE TABLE bare (label TEXT PRIMARY KEY, value TEXT NOT NULL)")
        making, ours, plain = in_turns(writer.make, writer.write, partial(upsert, file, writer.texts))
        size = sum(len(text) for _, text in writer.texts())
        print(
            f"  a turn's four blocks, {size:,} characters: made in {making / ROUNDS * 1e6:,.0f} µs;"
            f" whole write {ours / ROUNDS * 1e6:,.0f} µs, bare upsert {plain / ROUNDS * 1e6:,.0f} µs:"
            f" {ours / plain:.1f} times"
        )
        print(f"  kept of each turn in the revisions: {writer.bytes_per_revision():,.0f} bytes")
        file.close()
        writer.store.close_now()


if __name__ == "__main__":
    main()
