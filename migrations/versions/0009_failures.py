"""The cause of a failure is stored on the attempt, and of an experiment's first failed trial in its summary"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("allocations", sa.Column("failure", sa.Text(), nullable=True))
    op.add_column("experiment_summaries", sa.Column("failure", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("experiment_summaries", "failure")
    op.drop_column("allocations", "failure")
