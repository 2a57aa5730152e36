"""Tables for long-term memory: its ledger, its index, and the record of each search.

The SQL of each database is in a file next to this one, as it was released.
"""

from pathlib import Path

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the tables. Memories that exist already are indexed when they are next changed or searched for."""
    bind = op.get_bind()
    script = Path(__file__).with_suffix(f".{bind.dialect.name}.sql").read_text(encoding="utf-8")
    for statement in filter(str.strip, script.split(";\n")):
        bind.exec_driver_sql(statement)
