"""The first tables: what the protocol says happened, and what turns, replay and blocks need beside it.

The SQL lies beside this file, for each database, as it was released: a later change of `tables.py` must not
change what this step does.
"""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make every table."""
    bind = op.get_bind()
    script = Path(__file__).with_suffix(f".{bind.dialect.name}.sql").read_text(encoding="utf-8")
    for statement in filter(str.strip, script.split(";\n")):
        bind.exec_driver_sql(statement)
