"""Live containers and trials are found without a look at those that have ended"""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    live = sa.text("state != 'TERMINATED'")
    op.create_index("ix_containers_live", "containers", ["agent_id"], sqlite_where=live, postgresql_where=live)
    live = sa.text("state NOT IN ('COMPLETED', 'CANCELED', 'ERROR')")
    op.create_index("ix_trials_live", "trials", ["experiment_id"], sqlite_where=live, postgresql_where=live)


def downgrade() -> None:
    op.drop_index("ix_trials_live", "trials")
    op.drop_index("ix_containers_live", "containers")
