"""A user is linked with a user and a group of the agents' machines"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("users", sa.Column("agent_user_group", sa.JSON(), nullable=True))


def downgrade() -> None:
    op.drop_column("users", "agent_user_group")
