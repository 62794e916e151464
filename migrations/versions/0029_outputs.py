"""Checkpoints have a role: the state of a training, or what a script wrote"""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    column = sa.Column("role", sa.String(length=32), nullable=False, server_default=sa.text("'state'"))
    op.add_column("checkpoints", column)


def downgrade() -> None:
    """Outputs would count as checkpoints before; their files stay in the storage."""
    op.execute("DELETE FROM checkpoints WHERE role = 'outputs'")
    op.drop_column("checkpoints", "role")
