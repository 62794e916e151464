"""Services end when nobody uses them"""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("tasks", sa.Column("idle_timeout", sa.Float(), nullable=True))
    op.add_column("tasks", sa.Column("last_used_at", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Shells would be tasks of a kind that is unknown before; as commands they can still be killed."""
    op.execute("UPDATE tasks SET kind = 'COMMAND' WHERE kind = 'SHELL'")
    op.drop_column("tasks", "last_used_at")
    op.drop_column("tasks", "idle_timeout")
