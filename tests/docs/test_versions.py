"""The table of versions that go together says what the code does, and every file that names the version names this one."""

import re
import tomllib
from pathlib import Path

import pytest
from tests.support.agent_hello import say_hello
from tests.support.callers import callers
from tests.support.cluster import open_cluster

from determined.link.messages import PROTOCOL, Hello
from determined_agent.environments.task_python import OLDEST
from determined_agent.images.image_store import DEFAULT_IMAGES
from determined_launch.version import COMPATIBLE_VERSION, DETENT_VERSION, __version__
from determined_master.api.schemas.base import WIRE_VERSION
from determined_master.data_folder.backup import FORMAT
from determined_master.db.migrate import known_revisions, newest_revision

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations" / "versions.md").read_text(encoding="utf-8")
ROWS = {
    cells[0]: cells[1:]
    for line in PAGE.splitlines()
    if line.startswith("|") and not line.startswith("|-")
    for cells in [[cell.strip() for cell in line.strip("|").split("|")]]
}
HEAD = "part"


def python_of(project: str) -> str:
    wanted = tomllib.loads((ROOT / project).read_text(encoding="utf-8"))["project"]["requires-python"]
    return str(wanted).removeprefix(">=")


def values() -> dict[str, tuple[list[str], list[str]]]:
    """Returns for each row the values that its second and its third column must name, from the code."""
    oldest = ".".join(map(str, OLDEST))
    postgresql = (ROOT / "docs" / "operations" / "postgresql.md").read_text(encoding="utf-8")
    (server,) = re.findall(r"Versions (\d+) and newer", postgresql)
    return {
        "agent": ([str(PROTOCOL)], [str(PROTOCOL - 1), str(PROTOCOL)]),
        "`det`, `detent-client`": ([__version__], []),
        "Determined's own client and SDK": ([COMPATIBLE_VERSION], [WIRE_VERSION]),
        "library in a task": ([oldest], []),
        "Determined's library in a task": ([COMPATIBLE_VERSION], []),
        "database in a data folder": ([newest_revision()], [known_revisions()[0], newest_revision()]),
        "archive of `det-master backup`": ([str(FORMAT)], []),
        "default images of tasks": (sorted(DEFAULT_IMAGES.values()), []),
        "Python of master, agent and command line": (
            [python_of("pyproject.toml")],
            ["detent-cluster", "detent-client", python_of("client/pyproject.toml")],
        ),
        "PostgreSQL": ([server], []),
    }


def test_the_table_has_the_rows_that_are_compared_and_no_others() -> None:
    assert ROWS.keys() - {HEAD} == values().keys()
    assert ROWS[HEAD][0] == f"version in {DETENT_VERSION}"


@pytest.mark.parametrize("part", sorted(ROWS.keys() - {HEAD}))
def test_each_row_names_the_versions_of_the_code(part: str) -> None:
    own, others = values()[part]
    assert sorted(re.findall(r"`([^`]+)`", ROWS[part][0])) == own
    assert re.findall(r"`([^`]+)`", ROWS[part][1]) == others


async def test_a_master_takes_agents_of_the_protocols_in_the_table_and_refuses_others(tmp_path: Path) -> None:
    taken = {int(number) for number in re.findall(r"`(\d+)`", ROWS["agent"][1])}
    async with open_cluster(tmp_path) as cluster:
        headers = (await callers(cluster)).headers["join token"]
        for protocol in range(min(taken) - 1, max(taken) + 2):
            hello = Hello(agent_id=f"agent{protocol}", slots=[], protocol=protocol)
            answer = (await say_hello(cluster, hello, headers))[0]
            assert ("reason" in answer) == (protocol not in taken), answer
            assert protocol in taken or (answer["final"] and f"protocol {protocol}" in answer["reason"])


async def test_a_master_says_the_versions_of_the_table(tmp_path: Path) -> None:
    async with open_cluster(tmp_path) as cluster:
        info = await cluster.get("/info")
    assert f"`{info['version']}`" in ROWS["Determined's own client and SDK"][1]
    assert f"`{info['detent_version']}`" in ROWS["`det`, `detent-client`"][0]


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("CHANGELOG.md", r"^## (\d\S+) "),
        ("README.md", r"detent_cluster-([\d.]+\d)-py3"),
        ("webui/package.json", r'^  "version": "([^"]+)"'),
        ("docker-compose.yml", r"detent/\w+:([\d.]+\d)"),
        ("docker-compose.agent.yml", r"detent/\w+:([\d.]+\d)"),
        (".env.example", r"detent/\w+:([\d.]+\d)"),
        ("docs/how-to/containers.md", r"detent/\w+:([\d.]+\d)"),
    ],
)
def test_each_file_that_names_the_version_names_this_one(file: str, pattern: str) -> None:
    named = re.findall(pattern, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    if file == "CHANGELOG.md":
        named = named[:1]  # older releases follow
    assert set(named) == {DETENT_VERSION}
