"""The Python environments that an agent stores: waiting for a build, use by containers, and removal."""

import asyncio
import json
import os
import time
import venv
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from determined.environments import RESULT, VENV, Result
from determined.link.messages import ContainerSpec
from determined.link.run_folder import RunFolder
from determined_agent.drivers.driver import NotStarted
from determined_agent.environments.environment_store import Environments, facts_of
from determined_agent.environments.task_base import built_base
from determined_agent.environments.task_python import PythonProbe
from determined_agent.hooks.environment import EnvironmentHook
from determined_agent.hooks.hook import ContainerPlan
from determined_agent.settings import Settings
from determined_agent.task_process.identity import Identity

KEY = "0123456789abcdef"
DAY = 86400.0


def environments(data: Path, **settings: Any) -> Environments:
    values = {"unused_environment_seconds": 30 * DAY, "unused_environment_bytes": 1 << 40, **settings}
    return Environments(SimpleNamespace(data=data, **values))  # type: ignore[arg-type]


def plan(name: str, folder: Path) -> ContainerPlan:
    run = RunFolder(folder / name)
    run.output.mkdir(parents=True)
    return ContainerPlan(name, ContainerSpec(task_id="t", slots=[], environment={}, entrypoint="true"), run)


def make(known: Environments, key: str) -> Path:
    """Creates a complete environment without packages, as a build leaves it."""
    built = known.make(key)
    venv.create(built / VENV, symlinks=True)
    (built / RESULT).write_text(json.dumps(asdict(Result(True, bytes=1 << 20))))
    return built / VENV


async def test_a_container_waits_for_its_build_and_reports_the_environment_it_needs(tmp_path: Path):
    known, waiting = environments(tmp_path), plan("one", tmp_path)
    reports: list[str] = []
    waiting.on_change = lambda: reports.append(waiting.needed_environment)
    task = asyncio.create_task(known.wait(KEY, waiting))
    await asyncio.sleep(0)
    assert reports == [KEY]
    folder = await asyncio.to_thread(make, known, KEY)
    known.finish(KEY)
    assert await task == folder
    assert (waiting.needed_environment, reports[-1]) == ("", "")
    assert await known.wait(KEY, plan("two", tmp_path)) == folder


async def test_waiting_for_a_build_that_was_killed_raises_not_started(tmp_path: Path):
    known, waiting = environments(tmp_path), plan("one", tmp_path)
    task = asyncio.create_task(known.wait(KEY, waiting))
    await asyncio.sleep(0)
    known.make(KEY)
    known.finish(KEY)
    with pytest.raises(NotStarted, match="the task that builds the environment was killed"):
        await task


async def test_a_container_that_is_stopped_no_longer_needs_its_environment(tmp_path: Path):
    known, waiting = environments(tmp_path), plan("one", tmp_path)
    task = asyncio.create_task(known.wait(KEY, waiting))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert waiting.needed_environment == ""


async def test_clean_up_does_not_remove_an_environment_that_a_container_uses(tmp_path: Path):
    known = environments(tmp_path)
    folder = make(known, KEY)
    await known.wait(KEY, plan("one", tmp_path))
    long_ago = time.time() - 31 * DAY
    os.utime(tmp_path / "environments" / KEY / "used", (long_ago, long_ago))
    known.clean_up({"one"})
    assert folder.exists()
    known.leave("one")
    known.clean_up({"one"})
    assert not (tmp_path / "environments" / KEY).exists()


async def test_clean_up_removes_an_environment_whose_container_is_gone(tmp_path: Path):
    known = environments(tmp_path)
    folder = make(known, KEY)
    await known.wait(KEY, plan("one", tmp_path))
    long_ago = time.time() - 31 * DAY
    os.utime(tmp_path / "environments" / KEY / "used", (long_ago, long_ago))
    known.clean_up(set())
    assert not folder.exists()


def test_clean_up_removes_unused_environments_beyond_the_total_size(tmp_path: Path):
    known = environments(tmp_path, unused_environment_bytes=0)
    for number, name in enumerate(("a" * 16, "b" * 16)):
        make(known, name)
        at = time.time() - (2 - number) * DAY
        os.utime(tmp_path / "environments" / name, (at, at))
    known.clean_up(set())
    assert not list((tmp_path / "environments").iterdir())


def test_facts_of_an_environment_are_read_from_its_files(tmp_path: Path):
    folder = make(environments(tmp_path), KEY)
    facts = facts_of(folder)
    assert (facts.prefix, facts.official) == (folder, None)
    (facts.site_folders[0] / "determined-0.38.1.dist-info").mkdir()
    assert facts_of(folder).official == "0.38.1"


@pytest.mark.parametrize("linked", ["bin", "site-packages"])
def test_an_environment_whose_folders_are_links_is_refused(tmp_path: Path, linked: str):
    """The user who built it could lead the agent to files that only the agent may read."""
    folder = make(environments(tmp_path), KEY)
    linked_folder = folder / "bin" if linked == "bin" else facts_of(folder).site_folders[0]
    linked_folder.rename(tmp_path / "elsewhere")
    linked_folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotStarted, match="is a link"):
        facts_of(folder)


def test_built_base_does_not_read_programs_behind_links(tmp_path: Path):
    folder = make(environments(tmp_path), KEY)
    secret = tmp_path / "secret"
    secret.write_text("#!/usr/bin/python\nsecret\n")
    secret.chmod(0o755)
    (folder / "bin" / "taken").symlink_to(secret)
    (folder / "bin" / "own").write_text("#!/usr/bin/python\nown\n")
    (folder / "bin" / "own").chmod(0o755)
    scripts = built_base(facts_of(folder)).scripts
    assert scripts["own"] == b"own\n"
    assert "taken" not in scripts


@pytest.mark.skipif(os.geteuid() != 0, reason="only root opens folders for other users")
async def test_the_python_link_of_a_users_environment_mounts_no_folder_that_is_closed_to_the_user(tmp_path: Path):
    """The task would see the folders of its Python even if their parents are closed to its user."""
    (tmp_path / "closed" / "open" / "bin").mkdir(parents=True)
    folder = make(environments(tmp_path), KEY)
    (folder / "bin" / "python").unlink()
    (folder / "bin" / "python").symlink_to(tmp_path / "closed" / "open" / "bin" / "nothing")
    created = plan("one", tmp_path)
    created.built, created.identity = facts_of(folder), Identity(54001, 54001, (54001,), "ada", "ada", "/home/ada")
    settings = Settings(data=tmp_path / "agent", base_environment={"PATH": os.defpath})
    await EnvironmentHook(settings, "agent", 1, PythonProbe(settings.base_environment)).do(created)
    assert created.reachable
    assert not any(str(path).startswith(str(tmp_path)) for path in created.reachable)
