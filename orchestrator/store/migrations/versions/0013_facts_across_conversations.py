"""Changes to facts of other conversations, facts that are forgotten, and an index of memories by type.

The SQL of each database is in a file next to this one, as it was released.
"""

from pathlib import Path

from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Let `target` name a change of another conversation. SQLite needs a new table for this."""
    bind = op.get_bind()
    script = Path(__file__).with_suffix(f".{bind.dialect.name}.sql").read_text(encoding="utf-8")
    for statement in filter(str.strip, script.split(";\n")):
        bind.exec_driver_sql(statement)
