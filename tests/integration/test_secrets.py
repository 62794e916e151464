"""Secrets of configurations and passwords: no answer, index or log contains them, and tasks get them."""

import json
import logging
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from tests.integration.test_migrations import insert_whole
from tests.support.cluster import Cluster, login, open_cluster

from determined.config.masking import MASK
from determined_master.api.errors import translate
from determined_master.db.engine import make_migration_engine, sqlite_url
from determined_master.db.migrate import bring_up, upgrade
from determined_master.db.models import UserRow
from determined_master.loops.columns import ColumnLoop

S3 = {"type": "s3", "bucket": "b", "access_key": "hunter2-access", "secret_key": "hunter2-secret"}
CONFIG = """\
name: tiny
entrypoint: python3 run.py
searcher: {name: single, metric: loss}
hyperparameters: {}
data:
  secrets: {db: hunter2-data}
checkpoint_storage: {type: s3, bucket: b, access_key: hunter2-access, secret_key: hunter2-secret}
environment:
  environment_variables: [HF_TOKEN=hunter2-token, LEVEL=debug]
  registry_auth: {username: me, password: hunter2-registry}
"""
HASH = "$argon2id$hunter2"
ROUTES = (
    "/api/v1/experiments",
    "/api/v1/experiments/1",
    "/api/v1/experiments/1/trials",
    "/api/v1/experiments/1/checkpoints",
    "/api/v1/trials/1",
    "/api/v1/checkpoints/00000000-0000-4000-8000-000000000001",
    "/api/v1/experiments-search",
    "/api/v1/job-queues-v2",
    "/api/v1/master/config",
    "/detent/experiments/1/config",
    "/detent/columns/projects/0",
    "/detent/overview",
    "/detent/events",
    "/api/v1/tasks",
)


async def report_checkpoint(cluster: Cluster, allocation_id: str) -> None:
    body = {
        "taskId": allocation_id.rpartition(".")[0],
        "allocationId": allocation_id,
        "uuid": "00000000-0000-4000-8000-000000000001",
        "reportTime": "2026-01-01T00:00:00Z",
        "resources": {},
        "metadata": {"steps_completed": 1},
        "state": "STATE_COMPLETED",
    }
    answer = await cluster.client.post("/api/v1/checkpoints", json=body, headers=cluster.as_task(allocation_id))
    assert answer.status_code == 200, answer.text


async def test_no_answer_holds_a_secret_and_the_task_gets_all(tmp_path: Path):
    async with open_cluster(tmp_path, checkpoint_storage={**S3, "secret_key": "hunter2-cluster"}) as cluster:
        created = await cluster.client.post("/api/v1/experiments", json={"config": CONFIG, "activate": True})
        assert created.json()["config"]["checkpoint_storage"]["secret_key"] == MASK
        agent = await cluster.join()
        (desired,) = await agent.wait_for_desired()
        await agent.run(desired)
        await report_checkpoint(cluster, desired.allocation_id)
        answers = {"create": created.text}
        for route in ROUTES:
            answer = await cluster.client.get(route)
            if answer.status_code not in (404, 405, 501):
                assert answer.status_code == 200, (route, answer.text)
                answers[route] = answer.text
        assert [route for route, answer in answers.items() if "hunter2" in answer] == []
        assert len(answers) >= 10, sorted(answers)
        document = json.loads(answers["/api/v1/experiments/1"])
        assert document["experiment"]["originalConfig"].splitlines()[:4] == CONFIG.splitlines()[:4]
        assert f"HF_TOKEN={MASK}" in document["experiment"]["originalConfig"]
        assert document["config"]["environment"]["environment_variables"]["cpu"] == [f"HF_TOKEN={MASK}", "LEVEL=debug"]
        spec = desired.spec.model_dump_json() if desired.spec else ""
        for secret in ("data", "access", "secret", "token"):
            assert f"hunter2-{secret}" in spec


async def index_texts(cluster: Cluster) -> list[Any]:
    await ColumnLoop(cluster.master.indexer).tick()
    async with cluster.master.database.read() as session:
        names = await session.execute(text("SELECT name FROM column_names"))
        texts = await session.execute(text("SELECT text FROM column_values"))
        return [*names.scalars(), *texts.scalars()]


async def test_the_index_holds_no_secret(cluster: Cluster):
    await cluster.create(CONFIG)
    texts = await index_texts(cluster)
    assert "config.checkpoint_storage.bucket" in texts
    assert [value for value in texts if value and ("hunter2" in value or "secret" in value)] == []


@pytest.mark.sqlite
async def test_a_fork_by_its_owner_keeps_the_masked_secrets(cluster: Cluster):
    await cluster.create(CONFIG)
    masked = (await cluster.get("/api/v1/experiments/1"))["experiment"]["originalConfig"]
    assert MASK in masked
    answer = await cluster.client.post(
        "/api/v1/experiments", json={"config": masked.replace("tiny", "small"), "parentId": 1}
    )
    assert answer.status_code == 200, answer.text
    assert "hunter2" not in answer.text
    async with cluster.master.database.read() as session:
        rows = (await session.execute(text("SELECT config, original_config FROM experiments ORDER BY id"))).all()
    first, second = (json.loads(row.config) for row in rows)
    for section in ("data", "environment", "checkpoint_storage"):
        assert second[section] == first[section]
    assert MASK not in rows[1].original_config


async def test_a_fork_by_another_user_needs_secrets_of_its_own(cluster: Cluster):
    await cluster.create(CONFIG)
    masked = (await cluster.get("/api/v1/experiments/1"))["experiment"]["originalConfig"]
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=cluster.app), base_url="http://master") as client:
        await login(client, "determined")
        refused = await client.post("/api/v1/experiments", json={"config": masked, "parentId": 1})
        assert refused.status_code == 400
        assert "data.secrets.db is masked" in refused.json()["error"]["error"]
        own = masked.replace(f"={MASK}", "=mine").replace(f'"{MASK}"', "mine")
        created = await client.post("/api/v1/experiments", json={"config": own, "parentId": 1})
        assert created.status_code == 200, created.text


@pytest.mark.parametrize("extra", [{}, {"parentId": 1}])
async def test_a_masked_value_without_a_stored_secret_is_refused(cluster: Cluster, extra: dict[str, int]):
    await cluster.create()
    config = f"{CONFIG.split('data:')[0]}data: {{secrets: {{db: '{MASK}'}}}}\n"
    answer = await cluster.client.post("/api/v1/experiments", json={"config": config, **extra})
    assert answer.status_code == 400
    assert "data.secrets.db is masked" in answer.json()["error"]["error"]


def test_a_migration_removes_secrets_from_the_index(tmp_path: Path):
    engine = make_migration_engine(sqlite_url(tmp_path / "db"))
    upgrade(engine, "0006")
    names = {
        "config.data.secrets.db": "hunter2-data",
        "config.checkpoint_storage.secret_key": "hunter2-secret",
        "config.checkpoint_storage.endpoint_url": "https://me:hunter2@store",
        "config.checkpoint_storage.bucket": "b",
        "config.name": "a://b:c@d",
    }
    with engine.begin() as connection:
        for table, row in (
            ("users", {"id": 1, "username": "u"}),
            ("workspaces", {"id": 1, "name": "w", "user_id": 1}),
            ("projects", {"id": 1, "workspace_id": 1, "name": "p", "user_id": 1}),
            ("experiments", {"id": 1, "user_id": 1, "project_id": 1, "values_stale": 0}),
        ):
            insert_whole(connection, table, row)
        for number, (name, value) in enumerate(names.items()):
            insert_whole(connection, "column_names", {"id": number, "kind": "config", "name": name, "type": "text"})
            insert_whole(connection, "column_values", {"name_id": number, "experiment_id": 1, "text": value})
            insert_whole(connection, "column_counts", {"name_id": number, "project_id": 1, "count": 1})
    bring_up(sqlite_url(tmp_path / "db"))
    with engine.connect() as connection:
        left = connection.execute(text("SELECT name, text FROM column_names JOIN column_values ON name_id = id")).all()
        assert {tuple(row) for row in left} == {
            ("config.checkpoint_storage.endpoint_url", ""),
            ("config.checkpoint_storage.bucket", "b"),
            ("config.name", "a://b:c@d"),
        }
        assert connection.execute(text("SELECT count(*) FROM column_names")).scalar_one() == 3
        assert connection.execute(text("SELECT count(*) FROM column_counts")).scalar_one() == 3
        assert connection.execute(text("SELECT values_stale FROM experiments")).scalar_one() == 1
    engine.dispose()


async def add_second_admin(cluster: Cluster, password_hash: str) -> None:
    async with cluster.master.database.write() as session:
        now = cluster.master.clock.now()
        session.add(UserRow(username="admin", display_name="", password_hash=password_hash, modified_at=now))


async def test_a_failed_statement_logs_no_password_hash(cluster: Cluster, caplog: pytest.LogCaptureFixture):
    with pytest.raises(IntegrityError) as raised:
        await add_second_admin(cluster, HASH)
    with caplog.at_level(logging.ERROR):
        translate(raised.value)
    assert "INSERT INTO users" in caplog.text
    assert re.search("argon2|hunter2", caplog.text) is None
