"""What the guard heard in a message that came in a SyncRequest, and so is of no turn, is kept, too.

The SQL lies beside this file, for each database, as it was released.
"""

from pathlib import Path

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Let an event have no turn; SQLite can only make its table anew, with what was in it."""
    bind = op.get_bind()
    script = Path(__file__).with_suffix(f".{bind.dialect.name}.sql").read_text(encoding="utf-8")
    for statement in filter(str.strip, script.split(";\n")):
        bind.exec_driver_sql(statement)
