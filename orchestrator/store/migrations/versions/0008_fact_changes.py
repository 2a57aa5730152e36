"""Changes to the facts of conversations. The facts of older blocks become changes when they are next written.

The SQL of each database is in a file next to this one, as it was released.
"""

from pathlib import Path

from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the table `fact_changes`."""
    bind = op.get_bind()
    script = Path(__file__).with_suffix(f".{bind.dialect.name}.sql").read_text(encoding="utf-8")
    for statement in filter(str.strip, script.split(";\n")):
        bind.exec_driver_sql(statement)
