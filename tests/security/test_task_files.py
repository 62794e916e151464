"""Tasks that replace files of their run folder: the container ends, the agent's memory and event loop stay bounded, no
file outside changes, and the next container runs."""

import asyncio
import contextlib
import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path

import pytest
from tests.support.agents import agent_on, make_desired
from tests.support.container_engine import BASE_IMAGE, need_engine
from tests.support.fake_link_master import FakeLinkMaster, serving
from tests.support.waiting import eventually

from determined.link.messages import DesiredContainer, RunAs
from determined_agent.output import shipper as output

pytestmark = pytest.mark.budget(15, "runs real tasks that write hostile files")

FILES = (
    "record.json",
    "shim.json",
    "shim.lock",
    "shim.pid",
    "shim.log",
    "stop",
    "exit.json",
    "wake",
    "acknowledged",
    "output",
    "output/00000000000000000000.seg",
    "output/00000000000000000999.seg",
    "shim",
    "shim/exit.json",
    "run/exits",
    "run/exits/rank-0.json",
    "run/info/rendezvous.json",
    "run/spool",
    "run/spool/metrics.jsonl",
    "run/spool/metrics.sent",
    "run/workdir",
    "run/workdir/model.py",
)
OF_TASK = tuple(name for name in FILES if name.startswith(("run/", "output/", "shim/", "wake")))
"""Files that a task can replace in a container of its own user."""
KINDS = {
    "missing": "true",
    "empty": ': > "$F"',
    "fifo": 'mkfifo "$F"',
    "link to a device": 'ln -s /dev/zero "$F"',
    "link to a file": 'ln -s "$OUTSIDE/file" "$F"',
    "link to a folder": 'ln -s "$OUTSIDE" "$F"',
    "link to nothing": 'ln -s "$OUTSIDE/new" "$F"',
    "hard link": 'ln "$OUTSIDE/file" "$F" || ln -s "$OUTSIDE/file" "$F"',
    "folder": 'mkdir "$F"',
    "sparse": 'truncate -s 3G "$F"',
    "frames": """python3 -c 'import struct, sys; sys.stdout.buffer.write(struct.pack(">dBI", 1, 1, 2**32 - 1) * 9)' > "$F"; truncate -s 5G "$F" """,
    "nested": """python3 -c 'print("[" * 900000)' > "$F" """,
    "many files": """mkdir "$F"; python3 -c 'import os, sys
for number in range(20000): open(f"{sys.argv[1]}/{number:020d}.seg", "x").close()' "$F" """,
    "deep folders": """mkdir "$F"; python3 -c 'import os, sys
os.chdir(sys.argv[1])
for _ in range(1500): os.mkdir("d"); os.chdir("d")' "$F" """,
}
FILLED = ("output", "run/exits", "run/workdir")
"""Folders that a task fills with many files; elsewhere a folder is refused as such."""
MAX_LOOP_SECONDS = 1.5
MAX_MEMORY_BYTES = 300 << 20
CASES = [(file, kind) for file in FILES for kind in KINDS if kind != "many files" or file in FILLED]
SAMPLE = [case for number, case in enumerate(CASES) if number % 9 == 0]


def script(folder: str, outside: Path, files: Iterable[str], kind: str) -> str:
    """Returns a task that prints a line, puts something in the place of each file, and fails."""
    files = [file for file in files if kind != "many files" or file in FILLED]
    replace = "\n".join(
        f'F="{folder}/{file}"; mkdir -p "$(dirname "$F")"; rm -rf "$F"; {KINDS[kind]}' for file in files
    )
    return f"echo begun\nOUTSIDE='{outside}'\nexec 2>/dev/null\n{replace}\nexit 3"


def hostile(data: Path, outside: Path, name: str, files: Iterable[str], kind: str, **spec: object) -> DesiredContainer:
    text = script(str(data / "runs" / name), outside, files, kind)
    return make_desired(text, container_id=name, **spec)


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    """Yields the agent's data folder and removes it: pytest cannot remove what a failed test leaves in it."""
    yield tmp_path / "data"
    subprocess.run(["rm", "-rf", str(tmp_path / "data")], check=True)


@contextlib.asynccontextmanager
async def unharmed(outside: Path) -> AsyncIterator[None]:
    """Checks that files outside, the agent's memory and its event loop are unharmed by the block."""
    outside.mkdir()
    (outside / "file").write_text("mine")
    Path("/proc/self/clear_refs").write_text("5")  # the highest use of memory counts from here
    before, longest = highest_memory(), 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            begun = time.monotonic()
            await asyncio.sleep(0.02)
            longest = max(longest, time.monotonic() - begun)

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
    assert sorted(path.name for path in outside.iterdir()) == ["file"]
    assert (outside / "file").read_text() == "mine"
    assert highest_memory() - before < MAX_MEMORY_BYTES
    assert longest < MAX_LOOP_SECONDS


def highest_memory() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no VmHWM")


async def all_end(master: FakeLinkMaster, containers: list[DesiredContainer], within: float) -> None:
    """Starts the containers and waits until the master knows the end of each."""
    await master.set_desired(*containers)

    def have_ended() -> bool:
        reported = [master.report_of(desired.container_id) for desired in containers]
        return all(each is not None and each.exit is not None for each in reported)

    await eventually(have_ended, within=within)


@pytest.mark.parametrize("cases", [SAMPLE, pytest.param(CASES, marks=pytest.mark.long)], ids=["sample", "all"])
async def test_a_process_that_replaces_a_file_of_its_run_folder_harms_nobody_else(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, cases: list[tuple[str, str]]
) -> None:
    monkeypatch.setattr(output, "MAX_UNREADABLE", 2)
    master, outside = FakeLinkMaster(), tmp_path / "outside"
    async with unharmed(outside), serving(master.app()) as url, agent_on(url, data):
        for at in range(0, len(cases), 16):
            lot = [
                hostile(data, outside, f"{at + number:032x}", [file], kind)
                for number, (file, kind) in enumerate(cases[at : at + 16])
            ]
            await all_end(master, lot, within=60)
        good = make_desired("echo fine; exit 4")
        await all_end(master, [good], within=30)
        await eventually(lambda: master.text_of(good.container_id)[:1] == ["fine"])
        await master.set_desired()
        await eventually(lambda: not list((data / "runs").iterdir()), within=60)


@pytest.mark.xdist_group("container-engine")
@pytest.mark.parametrize(
    "kinds",
    [("link to a file", "frames", "fifo"), pytest.param(tuple(KINDS), marks=pytest.mark.long)],
    ids=["sample", "all"],
)
async def test_a_container_that_replaces_the_files_of_its_run_folder_harms_nobody_else(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, kinds: tuple[str, ...]
) -> None:
    """Each kind replaces all files at once, as root and as a user of its own."""
    need_engine()
    monkeypatch.setattr(output, "MAX_UNREADABLE", 2)
    master, outside = FakeLinkMaster(), tmp_path / "outside"
    settings = {"container_runtime": "docker", "default_images": {"cpu": BASE_IMAGE}}
    user = RunAs(uid=4711, gid=4711, user="someone", group="some")
    async with unharmed(outside), serving(master.app()) as url, agent_on(url, data, **settings):
        for lot in (kinds[::2], kinds[1::2]):
            containers = [hostile(data, outside, os.urandom(16).hex(), FILES, kind) for kind in lot]
            containers += [hostile(data, outside, os.urandom(16).hex(), OF_TASK, kind, run_as=user) for kind in lot]
            await all_end(master, containers, within=120)
        good = make_desired("echo fine; exit 4")
        await all_end(master, [good], within=30)
        await eventually(lambda: master.text_of(good.container_id)[:1] == ["fine"])
        await master.set_desired()
        await eventually(lambda: not list((data / "runs").iterdir()), within=60)
