"""Start-up hooks as users write them, in a process and in a container."""

import base64
import io
import json
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents import make_context, outcome
from tests.support.container_engine import BASE_IMAGE, need_engine
from tests.support.fake_link_master import FakeLinkMaster

from determined_agent.output.known_secrets import MAX_SECRETS, mask_of

pytestmark = pytest.mark.budget(10, "installs packages")


@dataclass(frozen=True)
class HookCase:
    """A hook, the task after it, and the expected lines and exit code."""

    hook: str
    task: str | list[str] = "echo task"
    lines: tuple[str, ...] = ("task",)
    code: int = 0


def _wheel() -> str:
    """Returns a wheel with one module as base64. Hooks install it without any index."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as wheel:
        wheel.writestr("tinypackage.py", "VALUE = 7\n")
        info = "tinypackage-1.dist-info/"
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: tinypackage\nVersion: 1\n")
        wheel.writestr(
            info + "WHEEL", "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(info + "RECORD", "")
    return base64.b64encode(data.getvalue()).decode()


FAILURE_PLACE = re.compile(r"startup-hook\.sh, line \d+: exit code \d+$")
WHEEL = "tinypackage-1-py3-none-any.whl"
PIP = "python3 -m pip install --quiet --no-index --break-system-packages --disable-pip-version-check --root-user-action=ignore"
HOOK_CASES = {
    "export": HookCase("export GREETING='hello world'", 'echo "$GREETING"', ("hello world",)),
    "export-quotes": HookCase("export ODD='a \"b\"  c'", 'echo "$ODD"', ('a "b"  c',)),
    "path": HookCase(
        "mkdir -p tools; printf '#!/bin/sh\\necho mine\\n' >tools/tool; chmod +x tools/tool; export PATH=$PWD/tools:$PATH",
        "tool",
        ("mine",),
    ),
    "unset": HookCase("unset FROM_CONFIG", 'echo "${FROM_CONFIG-gone}"', ("gone",)),
    "override": HookCase("export FROM_CONFIG=changed", 'echo "$FROM_CONFIG"', ("changed",)),
    "pip-wheel": HookCase(
        f"base64 -d payload >{WHEEL}; {PIP} ./{WHEEL}",
        "python3 -c 'import tinypackage; print(tinypackage.VALUE)'",
        ("7",),
    ),
    "pip-fails": HookCase(f"{PIP} no-such-package-anywhere 2>/dev/null", lines=(), code=1),
    "pip-fails-forgiven": HookCase(
        f"{PIP} no-such-package-anywhere 2>/dev/null || echo without it", lines=("without it", "task")
    ),
    "apt": HookCase("command -v apt-get >/dev/null && echo apt is here", lines=("apt is here", "task")),
    "conda-absent": HookCase(
        "if command -v conda; then conda activate lab; else echo no conda; fi", lines=("no conda", "task")
    ),
    "conda-demanded": HookCase("conda activate lab 2>/dev/null", lines=(), code=127),
    "fails": HookCase("echo before; false; echo after", lines=("before",), code=1),
    "exit-code": HookCase("exit 7", lines=(), code=7),
    "exit-zero": HookCase("echo enough; exit 0", lines=("enough",)),
    "forgiving": HookCase("set +e; false; echo on", lines=("on", "task")),
    "changes-folder": HookCase(
        "mkdir -p below; cd below; touch made", "ls below/made; basename $PWD", ("below/made", "workdir")
    ),
    "background": HookCase("sleep 600 &", lines=("task",)),
    "background-prints": HookCase(
        "mkfifo wait; (read -r _ <wait; echo from behind; touch said) &",
        "echo go >wait; until [ -e said ]; do sleep 0.01; done; echo task",
        ("from behind", "task"),
    ),
    "function": HookCase(
        "greet() { echo hi from a function; }; export -f greet", ["bash", "-c", "greet"], ("hi from a function",)
    ),
    "umask": HookCase("umask 027", "umask", ("0027",)),
    "limit": HookCase("ulimit -n 97", "ulimit -n", ("97",)),
    "trap": HookCase("trap 'echo never seen' EXIT; trap - EXIT", lines=("task",)),
    "environment": HookCase(
        "python3 -m venv --without-pip own; source own/bin/activate",
        "python3 -c 'import sys; print(sys.prefix.endswith(\"/own\"))'",
        ("True",),
    ),
    "reads-input": HookCase('read -r line || echo "nothing to read"', lines=("nothing to read", "task")),
    "here-document": HookCase("cat <<'END'\n$NOT expanded\nEND", lines=("$NOT expanded", "task")),
    "windows-line-ends": HookCase("echo one\r\necho two", lines=("one", "two", "task")),
    "no-newline-at-end": HookCase("echo last", lines=("last", "task")),
}

ENGINE = pytest.mark.xdist_group("container-engine")
RUNTIMES = [
    pytest.param({}, id="process"),
    pytest.param(
        {"container_runtime": "docker", "default_images": {"cpu": BASE_IMAGE}},
        id="docker",
        marks=ENGINE,
    ),
]
IN_PROCESS, IN_CONTAINER = [each.values[0] for each in RUNTIMES]
SAMPLE = ("export-quotes", "path", "pip-wheel", "exit-code", "function", "limit", "reads-input")
"""Hooks that run in a container too; the long form runs them all there."""
CASES = [pytest.param(name, IN_PROCESS, id=f"{name}-process") for name in HOOK_CASES] + [
    pytest.param(
        name, IN_CONTAINER, id=f"{name}-docker", marks=[ENGINE] if name in SAMPLE else [ENGINE, pytest.mark.long]
    )
    for name in HOOK_CASES
]


@pytest.mark.parametrize(("name", "settings"), CASES)
async def test_a_startup_hook_has_the_same_effect_in_a_process_and_in_a_container(
    tmp_path: Path, name: str, settings: dict[str, Any]
) -> None:
    if settings:
        need_engine()
    case, master = HOOK_CASES[name], FakeLinkMaster()
    context = make_context(master, startup_hook_sh=case.hook, payload=_wheel())
    exit_, lines, _ = await outcome(
        tmp_path, case.task, master=master, context=context, user_environment=["FROM_CONFIG=1"], settings=settings
    )
    printed = tuple(line.rstrip("\r") for line in lines if not FAILURE_PLACE.match(line))
    assert (exit_.code, printed) == (case.code, case.lines), exit_.message


@pytest.mark.parametrize("settings", RUNTIMES)
async def test_the_log_of_a_failed_startup_hook_names_the_line_but_no_command(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    """All users may read the log."""
    if settings:
        need_engine()
    master = FakeLinkMaster()
    hook = "export WANDB_API_KEY=0123456789abcdef\nfetch() {\n  curl-is-not-here -u me:$WANDB_API_KEY 2>/dev/null\n}\nfetch"
    exit_, lines, notes = await outcome(
        tmp_path,
        "echo never",
        master=master,
        context=make_context(master, startup_hook_sh=hook),
        startup_hook="export POOL_PASSWORD=fedcba9876543210",
        settings=settings,
    )
    assert exit_.code == 127
    assert lines[0] == "startup-hook.sh, line 3: exit code 127"
    written = "\n".join([*lines, *notes, exit_.message])
    assert not any(word in written for word in ("WANDB", "0123456789abcdef", "POOL_PASSWORD", "fedcba9876543210"))


async def test_secrets_of_the_configuration_that_a_task_prints_are_masked_in_its_log(tmp_path: Path) -> None:
    config = {"data": {"secrets": {"key": "from-data-secrets"}}}
    exit_, lines, _ = await outcome(
        tmp_path,
        'set -x; echo "$WANDB_API_KEY $DET_SESSION_TOKEN $PLAIN"; echo from-data-secrets; echo "a registry-password b" >&2; exit 3',
        user_environment=["WANDB_API_KEY=0123456789abcdef", "PLAIN=shown as it is"],
        environment={"DET_SESSION_TOKEN": "dta1.token-of-the-task", "DET_EXPERIMENT_CONFIG": json.dumps(config)},
        registry_auth={"username": "me", "password": "registry-password"},
    )
    assert exit_.code == 3
    assert "******** ******** shown as it is" in lines
    assert "a ******** b" in lines
    secrets = ("0123456789abcdef", "token-of-the-task", "from-data-secrets", "registry-password")
    assert not any(secret in line for secret in secrets for line in [*lines, exit_.model_dump_json()])


def test_short_values_and_secrets_beyond_the_limit_are_not_masked() -> None:
    variables = ["A_TOKEN=short", *(f"KEY_{number}_TOKEN={number:08}" + "x" * (number % 7) for number in range(300))]
    mask = mask_of({"user_environment": variables})
    assert mask("short 00000006xxxxxx") == "short ********"
    assert sum(mask(f"{number:08}" + "x" * (number % 7)) == "********" for number in range(300)) == MAX_SECRETS
