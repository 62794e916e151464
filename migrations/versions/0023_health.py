"""A trial knows its last report and its first metric that was not finite"""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("trials", sa.Column("last_report_at", sa.BigInteger(), nullable=True))
    op.add_column("trials", sa.Column("health_warning", sa.Text(), nullable=True))
    op.add_column("trials", sa.Column("must_stop", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    for name in ("must_stop", "health_warning", "last_report_at"):
        op.drop_column("trials", name)
