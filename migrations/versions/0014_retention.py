"""Checkpoints are deleted by the experiment's policy, and say why their files could not be removed"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("checkpoints", sa.Column("delete_error", sa.Text(), nullable=True))
    # Experiments of earlier versions have ended with all their checkpoints; nothing is deleted because of an upgrade.
    op.add_column("experiments", sa.Column("retention_due", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_index(
        "ix_checkpoints_deleting", "checkpoints", ["uuid"], sqlite_where=DELETING, postgresql_where=DELETING
    )
    op.create_index(
        "ix_experiments_retention_due", "experiments", ["id"], sqlite_where=DUE_SQLITE, postgresql_where=DUE
    )


DELETING = sa.text("state = 'DELETING'")
DUE, DUE_SQLITE = sa.text("retention_due"), sa.text("retention_due = 1")


def downgrade() -> None:
    """A checkpoint that is being deleted counts as deleted before."""
    op.execute("UPDATE checkpoints SET state = 'DELETED' WHERE state IN ('DELETING', 'DELETE_FAILED')")
    op.drop_index("ix_experiments_retention_due", "experiments")
    op.drop_index("ix_checkpoints_deleting", "checkpoints")
    op.drop_column("experiments", "retention_due")
    op.drop_column("checkpoints", "delete_error")
