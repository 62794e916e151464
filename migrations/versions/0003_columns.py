"""What lists of experiments show and filter by, in tables of their own; labels; settings of users"""

import json

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
LISTED = {
    "ix_experiments_listed": ["archived", "project_id", "state"],
    "ix_experiments_name": ["name"],
    "ix_experiments_start_time": ["start_time"],
    "ix_experiments_end_time": ["end_time"],
    "ix_experiments_pool": ["pool"],
    "ix_experiments_user": ["user_id"],
}
STALE = {"experiments": "values_stale", "trials": "experiment_id"}
LONGEST_LABEL = 255


def upgrade() -> None:
    _values()
    _of_experiments()
    op.create_table(
        "user_settings",
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("storage_path", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_user_settings_user_id_users", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "digest", name="pk_user_settings"),
    )
    for name, columns in LISTED.items():
        op.create_index(name, "experiments", columns)
    for table, indexed in STALE.items():
        # All that is there already is stale: the first start takes its values. A literal default, since SQLite would
        # copy the whole table for an expression.
        op.add_column(table, sa.Column("values_stale", sa.Boolean(), nullable=False, server_default=sa.text("TRUE")))
        op.create_index(
            f"ix_{table}_values_stale",
            table,
            [indexed],
            sqlite_where=sa.text("values_stale = 1"),
            postgresql_where=sa.text("values_stale"),
        )


def _values() -> None:
    op.create_table(
        "column_names",
        sa.Column("id", BIG, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("name", sa.String(512), nullable=False),
        sa.Column("type", sa.String(8), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_column_names"),
    )
    op.create_index("uq_column_names_name", "column_names", ["name", "kind"], unique=True)
    op.create_table(
        "column_values",
        sa.Column("name_id", BIG, nullable=False, autoincrement=False),
        sa.Column("experiment_id", BIG, nullable=False, autoincrement=False),
        sa.Column("number", sa.Double(), nullable=True),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("minimum", sa.Double(), nullable=True),
        sa.Column("maximum", sa.Double(), nullable=True),
        sa.Column("mean", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("name_id", "experiment_id", name="pk_column_values"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_column_values_experiment", "column_values", ["experiment_id"])
    op.create_table(
        "column_counts",
        sa.Column("project_id", BIG, nullable=False, autoincrement=False),
        sa.Column("name_id", BIG, nullable=False, autoincrement=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("minimum", sa.Double(), nullable=True),
        sa.Column("maximum", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["name_id"], ["column_names.id"], name="fk_column_counts_name_id_column_names"),
        sa.PrimaryKeyConstraint("project_id", "name_id", name="pk_column_counts"),
        sqlite_with_rowid=False,
    )


def _of_experiments() -> None:
    op.create_table(
        "experiment_summaries",
        sa.Column("experiment_id", BIG, nullable=False, autoincrement=False),
        sa.Column("project_id", BIG, nullable=False),
        sa.Column("num_trials", sa.Integer(), nullable=False),
        sa.Column("trial_id", BIG, nullable=True),
        sa.Column("source_trial_id", BIG, nullable=True),
        sa.Column("searcher_metric_value", sa.Double(), nullable=True),
        sa.Column("checkpoint_count", sa.Integer(), nullable=False),
        sa.Column("checkpoint_size", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment_id"],
            ["experiments.id"],
            name="fk_experiment_summaries_experiment_id_experiments",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("experiment_id", name="pk_experiment_summaries"),
    )
    labels = op.create_table(
        "experiment_labels",
        sa.Column("label", sa.String(255), nullable=False),
        sa.Column("experiment_id", BIG, nullable=False, autoincrement=False),
        sa.ForeignKeyConstraint(
            ["experiment_id"],
            ["experiments.id"],
            name="fk_experiment_labels_experiment_id_experiments",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("label", "experiment_id", name="pk_experiment_labels"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_experiment_labels_experiment", "experiment_labels", ["experiment_id"])
    found = op.get_bind().execute(sa.text("SELECT id, labels FROM experiments WHERE state <> 'DELETED'")).all()
    op.bulk_insert(labels, [{"label": word, "experiment_id": row.id} for row in found for word in _words(row.labels)])


def _words(labels: object) -> set[str]:
    listed = json.loads(labels) if isinstance(labels, str) else labels
    return {str(word)[:LONGEST_LABEL] for word in listed} if isinstance(listed, list) else set()


def downgrade() -> None:
    for table in STALE:
        op.drop_index(f"ix_{table}_values_stale", table)
        with op.batch_alter_table(table) as batch:
            batch.drop_column("values_stale")
    for name in LISTED:
        op.drop_index(name, "experiments")
    for name in (
        *("user_settings", "experiment_labels", "experiment_summaries"),
        *("column_counts", "column_values", "column_names"),
    ):
        op.drop_table(name)
