"""Points of metrics as packed columns; lines of output that tell of an error"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
ERRORS = """
UPDATE task_logs SET is_error = true
WHERE level IN ('ERROR', 'CRITICAL')
   OR log LIKE 'Traceback (most recent call last)%' OR log LIKE '[rank=%] Traceback (most recent call last)%'
"""


def upgrade() -> None:
    op.create_table(
        "series",
        sa.Column("id", BIG, nullable=False),
        sa.Column("trial_id", BIG, nullable=False),
        sa.Column("group", sa.String(length=255), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("points", sa.Integer(), nullable=False),
        sa.Column("packed_id", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["trial_id"], ["trials.id"], name=op.f("fk_series_trial_id_trials"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_series")),
    )
    op.create_index("uq_series_name", "series", ["trial_id", "group", "name"], unique=True)
    op.create_table(
        "series_chunks",
        sa.Column("id", BIG, nullable=False),
        sa.Column("series_id", BIG, nullable=False),
        sa.Column("factor", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("points", sa.Integer(), nullable=False),
        *(sa.Column(name, BIG, nullable=False) for name in ("first_id", "last_id")),
        *(
            sa.Column(name, BIG, nullable=False)
            for name in ("least_batches", "most_batches", "least_time", "most_time")
        ),
        *(sa.Column(name, sa.Float(), nullable=True) for name in ("least_epoch", "most_epoch")),
        sa.Column("epochs", sa.Integer(), nullable=False),
        # Last, so that the columns above are read without it.
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["series_id"], ["series.id"], name=op.f("fk_series_chunks_series_id_series"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_series_chunks")),
    )
    op.create_index("uq_series_chunks_place", "series_chunks", ["series_id", "factor", "place"], unique=True)
    op.create_table(
        "series_cursors",
        sa.Column("trial_id", BIG, nullable=False),
        sa.Column("packed_id", BIG, nullable=False),
        sa.Column("packed_run", sa.Integer(), nullable=False),
        sa.Column("reached_id", BIG, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("done_run", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["trial_id"], ["trials.id"], name=op.f("fk_series_cursors_trial_id_trials"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("trial_id", name=op.f("pk_series_cursors")),
    )
    # Not in a batch, which would copy every line that there is.
    op.add_column("task_logs", sa.Column("is_error", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.execute(ERRORS)
    op.create_index(
        "ix_task_logs_error",
        "task_logs",
        ["task_id", "id"],
        sqlite_where=sa.text("is_error = 1"),
        postgresql_where=sa.text("is_error"),
    )


def downgrade() -> None:
    op.drop_index("ix_task_logs_error", "task_logs")
    op.drop_column("task_logs", "is_error")
    op.drop_table("series_cursors")
    op.drop_table("series_chunks")
    op.drop_table("series")
