"""The schema of the straight way: keys, notices, deliveries, attempts, the trail.

Revision ID: 0001
Revises:
"""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

SQL = Path(__file__).parent.parent / "sql"


def upgrade() -> None:
    """Run the SQL files in their order."""
    for name in (
        "0001_foundation.sql",
        "0001_checkpoints.sql",
        "0001_moves.sql",
        "0001_exports.sql",
        "0001_rollups.sql",
        "0001_alerts.sql",
        "0001_sender_domains.sql",
        "0001_single_sign_on.sql",
        "0001_never_rewritten.sql",
        "0001_roles.sql",
    ):
        # Straight to the driver: no placeholders are looked for in the SQL.
        op.get_bind().connection.cursor().execute((SQL / name).read_text(encoding="utf-8"))


def downgrade() -> None:
    """Refused: the trail is not thrown away by a command."""
    message = "the trail cannot be migrated away; restore a backup instead"
    raise NotImplementedError(message)
