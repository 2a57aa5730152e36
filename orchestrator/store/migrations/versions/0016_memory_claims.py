"""Which process makes the memories of a conversation, and how many sentences its summaries lost.

The SQL of each database is in a file next to this one, as it was released.
"""

from pathlib import Path

from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Change the table. Nothing is known of the summaries that exist."""
    bind = op.get_bind()
    script = Path(__file__).with_suffix(f".{bind.dialect.name}.sql").read_text(encoding="utf-8")
    for statement in filter(str.strip, script.split(";\n")):
        bind.exec_driver_sql(statement)
