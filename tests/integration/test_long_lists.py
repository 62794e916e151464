"""Lists of users, workspaces and projects: the database sorts, filters and counts them."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select
from tests.support.cluster import Cluster, open_cluster
from tests.support.database_reads import loads
from tests.support.makers import NOON, add_experiment

from determined_master.db.models import (
    ProjectRow,
    UserRow,
    WorkspaceRow,
)
from determined_master.experiments import repository as experiment_rows
from determined_master.users import list_queries

MANY, PAGE = 3000, 7
NAMES = ["émile", "Zoë", "zoe", "", "ÉMILE", "a%b", "A_b"]
USER_ORDERS: dict[str, Callable[[UserRow], Any]] = {
    "": lambda user: 0,
    "SORT_BY_DISPLAY_NAME": lambda user: user.display_name,
    "SORT_BY_USER_NAME": lambda user: user.username,
    "SORT_BY_NAME": lambda user: user.display_name or user.username,
    "SORT_BY_ADMIN": lambda user: user.admin,
    "SORT_BY_ACTIVE": lambda user: user.active,
    "SORT_BY_REMOTE": lambda user: user.remote,
    "SORT_BY_MODIFIED_TIME": lambda user: user.modified_at,
    "SORT_BY_LAST_AUTH_TIME": lambda user: user.last_auth_at.timestamp() if user.last_auth_at else float("inf"),
}
PLACE_ORDERS: dict[str, Callable[[Any], Any]] = {
    "": lambda row: 0,
    "SORT_BY_ID": lambda row: row.id,
    "SORT_BY_NAME": lambda row: row.name,
}


async def add_users(cluster: Cluster, count: int) -> list[UserRow]:
    rows = [
        {
            "username": f"user-{i * 7919 % 9973:04}",
            "display_name": NAMES[i % len(NAMES)],
            "admin": i % 5 == 0,
            "active": i % 3 != 0,
            "remote": i % 4 == 0,
            "modified_at": NOON + timedelta(seconds=i % 11),
            "last_auth_at": None if i % 6 == 0 else NOON + timedelta(seconds=i % 13),
        }
        for i in range(count)
    ]
    async with cluster.master.database.write() as session:
        await session.execute(insert(UserRow), rows)
        return list((await session.scalars(select(UserRow).order_by(UserRow.id))).all())


async def add_places(cluster: Cluster, count: int) -> tuple[list[WorkspaceRow], list[ProjectRow]]:
    """Adds workspaces, and projects in the first workspace, with equal names among them."""
    places: list[dict[str, Any]] = [
        {"name": f"{NAMES[i % len(NAMES)]} {i // 2}", "user_id": 1 + i % 2, "archived": i % 3 == 0}
        for i in range(count)
    ]
    async with cluster.master.database.write() as session:
        await session.execute(insert(WorkspaceRow), [{**p, "name": f"{p['name']} {i}"} for i, p in enumerate(places)])
        await session.execute(insert(ProjectRow), [{**p, "workspace_id": 1, "name": p["name"][:4]} for p in places])
        workspaces = (await session.scalars(select(WorkspaceRow).order_by(WorkspaceRow.id))).all()
        projects = (await session.scalars(select(ProjectRow).order_by(ProjectRow.id))).all()
    return list(workspaces), list(projects)


async def check_pages(
    cluster: Cluster, path: str, key: str, rows: list[Any], order: str, query: dict[str, Any]
) -> None:
    """Checks pages in both directions against ``rows``, which are in ascending order."""
    for direction, expected in (("ORDER_BY_ASC", rows), ("ORDER_BY_DESC", rows[::-1])):
        ids: list[int] = []
        for offset in range(0, len(rows), PAGE):
            answer = await cluster.get(path, sortBy=order, orderBy=direction, offset=offset, limit=PAGE, **query)
            end = min(offset + PAGE, len(rows))
            window = {"offset": offset, "limit": PAGE, "startIndex": offset, "endIndex": end, "total": len(rows)}
            assert answer["pagination"] == window
            ids += [each["id"] for each in answer[key]]
        assert ids == [row.id for row in expected]
        last = await cluster.get(path, sortBy=order, orderBy=direction, offset=-2, limit=PAGE, **query)
        assert [each["id"] for each in last[key]] == ids[-2:]
        none = await cluster.get(path, sortBy=order, orderBy=direction, limit=-2, **query)
        assert (none[key], none["pagination"]["total"]) == ([], len(rows))


@pytest.mark.parametrize("order", USER_ORDERS)
async def test_pages_of_users_are_the_sorted_list(tmp_path: Path, order: str) -> None:
    async with open_cluster(tmp_path) as cluster:
        rows = sorted(await add_users(cluster, 40), key=lambda user: (USER_ORDERS[order](user), user.id))
        await check_pages(cluster, "/api/v1/users", "users", rows, order, {})


@pytest.mark.parametrize(
    ("query", "fits"),
    [
        ({"name": "ÉmI"}, lambda user: "émi" in user.display_name.lower()),
        ({"name": "%"}, lambda user: "%" in user.display_name),
        ({"name": "1 Z"}, lambda user: "1 z" in f"{user.username} {user.display_name}".lower()),
        ({"name": "x" * 20_000}, lambda user: False),
        ({"active": "true", "admin": "false"}, lambda user: user.active and not user.admin),
    ],
    ids=["letters", "sign", "both names", "long", "flags"],
)
async def test_users_are_filtered(tmp_path: Path, query: dict[str, Any], fits: Callable[[UserRow], bool]) -> None:
    async with open_cluster(tmp_path) as cluster:
        rows = [user for user in await add_users(cluster, 40) if fits(user)]
        await check_pages(cluster, "/api/v1/users", "users", rows, "", query)


@pytest.mark.parametrize("order", PLACE_ORDERS)
async def test_pages_of_workspaces_and_projects_are_the_sorted_lists(tmp_path: Path, order: str) -> None:
    async with open_cluster(tmp_path) as cluster:
        workspaces, projects = await add_places(cluster, 40)
        for path, key, rows in (
            ("/api/v1/workspaces", "workspaces", workspaces),
            ("/api/v1/workspaces/1/projects", "projects", projects),
        ):
            rows = sorted(rows, key=lambda row: (PLACE_ORDERS[order](row), row.id))
            await check_pages(cluster, path, key, rows, order, {})
            mine = [row for row in rows if row.user_id == 2 and not row.archived]
            assert mine
            await check_pages(cluster, path, key, mine, order, {"users": "determined", "archived": "false"})
            await check_pages(cluster, path, key, mine, order, {"userIds": 2, "archived": "false"})


@pytest.mark.parametrize(
    ("query", "fits"),
    [
        ({"name": "éMi"}, lambda row: "émi" in row.name.lower()),
        ({"name": "_B"}, lambda row: "_b" in row.name.lower()),
        ({"nameCaseSensitive": "zoe 1 2"}, lambda row: row.name == "zoe 1 2"),
        ({"pinned": "true"}, lambda row: False),
    ],
)
async def test_workspaces_are_filtered(tmp_path: Path, query: dict[str, Any], fits: Callable[[Any], bool]) -> None:
    async with open_cluster(tmp_path) as cluster:
        workspaces, _ = await add_places(cluster, 40)
        await check_pages(cluster, "/api/v1/workspaces", "workspaces", [w for w in workspaces if fits(w)], "", query)


async def test_a_page_of_users_loads_its_own_rows_only(tmp_path: Path) -> None:
    async with open_cluster(tmp_path) as cluster:
        rows = await add_users(cluster, MANY)
        with loads(UserRow) as loaded:
            answer = await cluster.get("/api/v1/users", name="user-", sortBy="SORT_BY_NAME", offset=100, limit=PAGE)
        assert answer["pagination"]["total"] == MANY
        ids = {user["id"] for user in answer["users"]}
        assert len(ids) == PAGE
        caller = {row.id for row in rows if row.username == "admin"}
        assert {row.id for row in loaded} - caller == ids - caller


@pytest.mark.parametrize("batch", [2, list_queries.MAX_IDS_A_STATEMENT])
async def test_workspaces_and_projects_count_their_experiments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    for module in (list_queries, experiment_rows):
        monkeypatch.setattr(module, "MAX_IDS_A_STATEMENT", batch)
    async with open_cluster(tmp_path) as cluster:
        await add_places(cluster, 3)
        async with cluster.master.database.write() as session:
            for project_id in (1, 2, 2):
                await add_experiment(session, project_id=project_id)
        workspaces = (await cluster.get("/api/v1/workspaces"))["workspaces"]
        assert [(w["numProjects"], w["numExperiments"]) for w in workspaces] == [(4, 3), (0, 0), (0, 0), (0, 0)]
        projects = (await cluster.get("/api/v1/workspaces/1/projects"))["projects"]
        assert [(p["numExperiments"], p["numActiveExperiments"]) for p in projects] == [(1, 0), (2, 0), (0, 0), (0, 0)]
        assert (await cluster.get("/api/v1/workspaces/1"))["workspace"] == workspaces[0]
        assert (await cluster.get("/api/v1/projects/2"))["project"] == projects[1]
