"""The state of the code from which an experiment was created"""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "experiment_code",
        sa.Column(
            "experiment_id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            sa.ForeignKey("experiments.id", ondelete="CASCADE"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("commit_id", sa.String(64), nullable=True),
        sa.Column("branch", sa.Text(), nullable=True),
        sa.Column("remote", sa.Text(), nullable=True),
        sa.Column("diff", sa.LargeBinary(), nullable=False),
        sa.Column("is_cut", sa.Boolean(), nullable=False),
        sa.Column("untracked", sa.JSON(), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("experiment_code")
