"""The ledger of memories made from conversations, and an index of the requests that made them.

The SQL of each database is in a file next to this one, as it was released.
"""

from pathlib import Path

from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Create the tables and indexes."""
    bind = op.get_bind()
    script = Path(__file__).with_suffix(f".{bind.dialect.name}.sql").read_text(encoding="utf-8")
    for statement in filter(str.strip, script.split(";\n")):
        bind.exec_driver_sql(statement)
