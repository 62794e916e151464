"""The Python environment of each attempt. Attempts change neither the product's nor the user's environment."""

import asyncio
import functools
import os
import sys
import venv
from pathlib import Path

import pytest
from tests.agent.test_hooks import is_done, make_context, outcome
from tests.support.agents import agent_on, make_desired
from tests.support.fake_link_master import FakeLinkMaster, serving
from tests.support.packages import listing, make_environment, make_wheel, site_packages
from tests.support.waiting import eventually

from determined_agent.drivers.driver import NotStarted
from determined_agent.environments.task_python import PythonProbe
from determined_agent.host_access.mount_probe import can_mount

pytestmark = pytest.mark.budget(15, "installs packages")

# Exits before pip can change an environment that is not the attempt's own.
ONLY_IN_THE_ATTEMPT = 'case $(python -c "import sys; print(sys.prefix)") in "$DET_RUN_DIR"/*) ;; *) exit 77 ;; esac\n'


async def test_two_containers_do_not_see_each_others_installed_packages(tmp_path: Path) -> None:
    wheels = [make_wheel(tmp_path / "wheels", "tiny", version) for version in ("1.0", "2.0", "3.0")]
    base = make_environment(tmp_path / "base", wheels[0])
    before = listing(site_packages(base))
    master = FakeLinkMaster()
    containers = []
    for wheel in wheels[1:]:
        hook = f"python -m pip install -q --no-index {wheel}\n"
        context = make_context(master, startup_hook_sh=hook)
        script = "import tiny; print(tiny.version)"
        containers.append(make_desired(["python3", "-c", script], context=context, image=f"venv:{base}"))
    containers.append(make_desired(["python", "-c", "import tiny; print(tiny.version)"], image=f"venv:{base}"))
    async with serving(master.app()) as url, agent_on(url, tmp_path / "data"):
        for desired in containers:  # in sequence, so that the next could see what the previous one installed
            await master.set_desired(*containers[: containers.index(desired) + 1])
            await eventually(functools.partial(is_done, master, desired))
        await eventually(lambda: not list(tmp_path.glob("data/runs/*/run/venv")))
    assert [master.text_of(desired.container_id)[-1] for desired in containers] == ["2.0", "3.0", "1.0"]
    assert listing(site_packages(base)) == before


async def test_pip_in_a_task_does_not_change_the_base_environment(tmp_path: Path) -> None:
    one, two = (make_wheel(tmp_path / "wheels", "tiny", version) for version in ("1.0", "2.0"))
    base = make_environment(tmp_path / "base", one)
    before = listing(site_packages(base))
    script = (
        "python -m pip uninstall -y tiny; python -c 'import tiny; print(tiny.version)'; "
        f"pip3 install -q --no-index {two}; pip uninstall -q -y tiny; python3 -c 'import tiny; print(tiny.version)'"
    )
    exit_, lines, _ = await outcome(tmp_path, script, image=f"venv:{base}")
    assert exit_.code == 0, (exit_, lines)
    assert [line for line in lines if line in ("1.0", "2.0")] == ["1.0", "1.0"]
    assert any("outside environment" in line for line in lines)
    assert listing(site_packages(base)) == before


@pytest.mark.torch
async def test_tasks_on_the_products_python_do_not_change_its_environment(tmp_path: Path) -> None:
    product = Path(sys.prefix)
    before = listing(product)
    wheel = make_wheel(tmp_path / "wheels", "pydantic", "1.0")
    master = FakeLinkMaster()
    hook = (
        f"{ONLY_IN_THE_ATTEMPT}python -c 'import fastapi' 2>&1 | tail -n 1\n"
        f"pip install -q --no-index {wheel}\npip uninstall -q -y numpy\n"
    )
    context = make_context(master, startup_hook_sh=hook)
    script = (
        "import json, os, pydantic, numpy, requests, yaml, ruamel.yaml, tqdm, filelock, packaging, site, sys, "
        "importlib.util as find, importlib.metadata as metadata, shutil; "
        "print(json.dumps([pydantic.version, site.ENABLE_USER_SITE, os.__file__.startswith(sys.base_prefix), "
        "find.find_spec('tensorboard') is not None, find.find_spec('torch') is not None, "
        "'detent-cluster' in [one.metadata['Name'] for one in metadata.distributions()], "
        "find.find_spec('determined_master') is None, 'task-programs' in shutil.which('torchrun')]))"
    )
    exit_, lines, _ = await outcome(tmp_path, ["python", "-c", script], master=master, context=context)
    assert exit_.code == 0, (exit_, lines)
    assert "ModuleNotFoundError: No module named 'fastapi'" in lines
    assert lines[-1] == '["1.0", false, true, true, true, false, true, true]'
    assert listing(product) == before
    created = list((tmp_path / "data" / "task-base").glob("*/site-packages/torch"))
    assert [path.is_symlink() for path in created] == [True]  # not on the disk a second time


async def test_without_pip_in_the_base_a_pip_command_fails_with_the_reason(tmp_path: Path) -> None:
    venv.create(tmp_path / "base", symlinks=True)
    exit_, lines, _ = await outcome(tmp_path, "pip install x; python -m pip --version", image=f"venv:{tmp_path}/base")
    assert exit_.code == 1
    assert any("the environment that this task builds on has no pip" in line for line in lines)
    assert "pip: [pip]" not in exit_.message


async def test_programs_of_the_base_run_under_the_attempts_python(tmp_path: Path) -> None:
    base = make_environment(tmp_path / "base with a space")
    for name, first in (
        ("plain", f"#!{sys.executable}"),
        ("long", "#!/bin/sh\n'''exec' \"/x/python\" \"$0\" \"$@\"\n' '''"),
    ):
        (base / "bin" / name).write_text(f"{first}\nimport sys\nprint(sys.prefix, *sys.argv[1:])\n")
        (base / "bin" / name).chmod(0o755)
    (base / "bin" / "shell").write_text("#!/bin/sh\necho shell\n")
    (base / "bin" / "shell").chmod(0o755)
    exit_, lines, _ = await outcome(
        tmp_path, 'plain "a b"; long; shell; env -u DET_TASK_PYTHON plain; echo "$VIRTUAL_ENV"', image=f"venv:{base}"
    )
    own = lines[-1]
    assert exit_.code == 0, (exit_, lines)
    assert lines == [f"{own} a b", own, "shell", own, own]
    assert own.endswith("/run/venv")


async def test_the_base_environment_is_read_only_in_the_mount_namespace_of_a_task(tmp_path: Path) -> None:
    if os.geteuid() != 0 or not can_mount():
        pytest.skip("only where the agent can mount without a user namespace is the base read-only")
    base = make_environment(tmp_path / "base")
    exit_, lines, _ = await outcome(
        tmp_path, f"touch {site_packages(base)}/x; touch {tmp_path}/y && echo done", image=f"venv:{base}"
    )
    assert exit_.code == 0
    assert "done" in lines
    assert any("Read-only file system" in line for line in lines)
    assert not (site_packages(base) / "x").exists()


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (["python", "-c", "import sklearn_nosuch.tree"], "`environment: {pip: [sklearn_nosuch]}`"),
        (["python", "-c", "import cv2"], "`environment: {pip: [opencv-python-headless]}`"),
        (["python", "-m", "nosuch"], "`environment: {pip: [nosuch]}`"),
        (["python", "-m", "determined.launch.wrap_rank", "0", "--", "python", "-c", "import nosuch"], "pip: [nosuch]"),
    ],
)
async def test_a_missing_module_is_reported_with_the_setting_that_adds_it(
    tmp_path: Path, command: list[str], text: str
) -> None:
    exit_, _, notes = await outcome(tmp_path, command)
    assert exit_.code == 1
    assert text in notes[-1]
    assert exit_.message.splitlines()[-1] in notes[-1]


async def test_no_remedy_is_named_for_a_module_that_no_index_has(tmp_path: Path) -> None:
    for script in ("import own.nosuch", "import determined.nosuch", "print(\"No module named 'x'\"); exit(3)"):
        master = FakeLinkMaster()
        context = make_context(master, **{"own__x.py": ""})
        exit_, lines, _ = await outcome(
            tmp_path / script[7:10], ["python", "-c", script], master=master, context=context
        )
        assert exit_.code
        assert "pip install" not in exit_.message, (script, lines)


async def test_a_python_that_hangs_delays_no_other_probe_and_is_named(tmp_path: Path) -> None:
    hanging = tmp_path / "python"
    hanging.write_text("#!/bin/sh\nsleep 600\n")
    hanging.chmod(0o755)
    probe = PythonProbe({"PATH": os.defpath})
    hung = asyncio.create_task(probe.ask(hanging))
    facts = await asyncio.wait_for(probe.ask(Path(sys.executable)), 30)
    assert facts.prefix == Path(sys.prefix)
    assert not hung.done()
    hung.cancel()
    impatient = PythonProbe({"PATH": os.defpath}, seconds=0.1)
    with pytest.raises(NotStarted, match=f"{hanging} did not answer within 0.1 s"):
        await impatient.ask(hanging)


async def test_a_python_that_is_broken_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no luck >&2\n")
    broken.chmod(0o755)
    with pytest.raises(NotStarted, match=f"{broken} does not work: no luck"):
        await PythonProbe({"PATH": os.defpath}).ask(broken)
