"""Programs of Slurm beside the event loop: none of them outlives its question."""

import asyncio
from pathlib import Path

import pytest
from tests.support.waiting import eventually

from determined_master.providers.slurm.client import NoAnswer, SlurmClient, SlurmError


def client(folder: Path, script: str, timeout: float = 60.0) -> SlurmClient:
    program = folder / "squeue"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return SlurmClient({"PATH": f"{folder}:/usr/bin:/bin"}, timeout=timeout)


def is_alive(pid: str) -> bool:
    status = Path(f"/proc/{pid.strip()}/status")
    return status.exists() and "\nState:\tZ" not in status.read_text()


HANGS = 'sleep 600 & echo $! > "$(dirname "$0")/pid"; wait'


async def test_a_program_that_hangs_is_killed_with_what_it_started(tmp_path: Path) -> None:
    with pytest.raises(NoAnswer, match="squeue took longer than 2 s"):
        await client(tmp_path, HANGS, timeout=2).queue()
    await eventually(lambda: not is_alive((tmp_path / "pid").read_text()))


async def test_a_program_ends_with_the_master(tmp_path: Path) -> None:
    asking = asyncio.create_task(client(tmp_path, HANGS).queue())
    pid = await eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await eventually(lambda: not is_alive(str(pid)))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", NoAnswer),
        ("squeue: error: Invalid user: 77", SlurmError),
    ],
)
async def test_a_program_that_fails_says_why(tmp_path: Path, error: str, kind: type[SlurmError]) -> None:
    with pytest.raises(SlurmError) as failed:
        await client(tmp_path, f"echo '{error}' >&2; exit 1").queue()
    assert type(failed.value) is kind
    assert error.partition("error: ")[2] in str(failed.value)
