"""Tasks build Python environments on the agents whose containers need them"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "containers", sa.Column("needed_environment", sa.String(16), nullable=False, server_default=sa.text("''"))
    )
    op.add_column("allocations", sa.Column("agent_id", sa.String(255), nullable=True))
    op.add_column("tasks", sa.Column("agent_id", sa.String(255), nullable=True))
    op.add_column("tasks", sa.Column("environment_key", sa.String(16), nullable=True))


def downgrade() -> None:
    """Builds are forgotten: a container that waits for one makes the next master start another."""
    op.execute("UPDATE tasks SET kind = 'COMMAND' WHERE kind = 'ENVIRONMENT'")
    op.drop_column("tasks", "environment_key")
    op.drop_column("tasks", "agent_id")
    op.drop_column("allocations", "agent_id")
    op.drop_column("containers", "needed_environment")
