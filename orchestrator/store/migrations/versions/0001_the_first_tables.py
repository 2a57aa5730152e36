"""The first tables: those of the protocol, and those for turns, replay and blocks.

The SQL of each database is in a file next to this one, as it was released, because later changes of
`rows.py` must not change what this migration does.
"""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create all tables."""
    bind = op.get_bind()
    script = Path(__file__).with_suffix(f".{bind.dialect.name}.sql").read_text(encoding="utf-8")
    for statement in filter(str.strip, script.split(";\n")):
        bind.exec_driver_sql(statement)
