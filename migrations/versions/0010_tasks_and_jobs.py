"""Tasks and jobs: every trial is a task of its experiment's job, and every allocation belongs to a task"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_WEIGHTS = {
    "sqlite": "CASE WHEN json_valid(config) THEN COALESCE(json_extract(config, '$.resources.weight'), 1) ELSE 1 END",
    "postgresql": "COALESCE(CAST(config #>> '{resources,weight}' AS FLOAT), 1)",
}


def upgrade() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("pool", sa.String(255), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("weight", sa.Float(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )
    op.create_table(
        "tasks",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("job_id", sa.String(64), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("experiment_id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=True),
        sa.Column("token_scope", sa.String(32), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(32), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("description", sa.Text(), nullable=False, server_default=""),
        sa.Column("config", sa.JSON(), nullable=True),
        sa.Column("context_hash", sa.String(64), nullable=True),
        sa.Column("context_size", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("workspace_id", sa.Integer(), nullable=True),
        sa.Column("slots", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("spec", sa.JSON(), nullable=True),
        sa.Column("run_id", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("failures", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("retry_at", sa.BigInteger(), nullable=True),
        sa.Column("exit_reason", sa.String(32), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_tasks_job_id_jobs"),
        sa.PrimaryKeyConstraint("id", name="pk_tasks"),
    )
    _fill()
    # After the rows: an index is built faster than it is maintained.
    op.create_index("ix_tasks_job_id", "tasks", ["job_id"])
    op.create_index("ix_tasks_experiment_id", "tasks", ["experiment_id"])
    op.create_index("ix_tasks_state", "tasks", ["state"])
    op.create_index("ix_tasks_kind", "tasks", ["kind", "created_at"])
    op.create_index("ix_tasks_context_hash", "tasks", ["context_hash"])
    with op.batch_alter_table("allocations") as batch:
        batch.create_foreign_key("fk_allocations_task_id_tasks", "tasks", ["task_id"], ["id"])
    op.drop_column("experiments", "priority")


def _fill() -> None:
    """Adds a job for each experiment and a task for each trial. Allocations without a trial get a task of their own."""
    weight = _WEIGHTS[op.get_bind().dialect.name]
    _run(
        "INSERT INTO jobs (id, pool, priority, weight, position) "
        f"SELECT job_id, pool, priority, {weight}, start_time FROM experiments"
    )
    columns = "id, kind, job_id, user_id, experiment_id, token_scope, created_at"
    _run(
        f"INSERT INTO tasks ({columns}) SELECT t.task_id, 'TRIAL', e.job_id, e.user_id, e.id, 'trial', t.start_time "
        "FROM trials t JOIN experiments e ON e.id = t.experiment_id"
    )
    orphans = "FROM allocations a WHERE NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = a.task_id) GROUP BY a.task_id"
    _run(
        "INSERT INTO jobs (id, pool, priority, weight, position) "
        f"SELECT a.task_id, MIN(a.pool), MIN(a.priority), 1, MIN(a.submitted_at) {orphans}"
    )
    _run(
        f"INSERT INTO tasks ({columns}) "
        f"SELECT a.task_id, 'TRIAL', a.task_id, MIN(a.user_id), NULL, 'trial', MIN(a.created_at) {orphans}"
    )


def _run(statement: str) -> None:
    op.execute(sa.text(statement.replace(":", r"\:")))  # a colon is no parameter here


def downgrade() -> None:
    op.add_column("experiments", sa.Column("priority", sa.Integer(), nullable=False, server_default="42"))
    _run("UPDATE experiments SET priority = (SELECT j.priority FROM jobs j WHERE j.id = experiments.job_id)")
    with op.batch_alter_table("allocations") as batch:
        batch.drop_constraint("fk_allocations_task_id_tasks", type_="foreignkey")
    # An earlier version would run the attempts of other tasks as trials.
    others = "SELECT a.id FROM allocations a JOIN tasks t ON t.id = a.task_id WHERE t.kind <> 'TRIAL'"
    for table in ("slot_holds", "containers"):
        _run(f"DELETE FROM {table} WHERE allocation_id IN ({others})")
    _run(f"DELETE FROM allocations WHERE id IN ({others})")
    op.drop_table("tasks")
    op.drop_table("jobs")
