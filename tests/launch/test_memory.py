"""Detection of a worker that the kernel kills because it is out of memory, in a real control group."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from determined_launch import out_of_memory

GROUPS = Path("/sys/fs/cgroup/memory")
LIMIT = 96 << 20


def skip_reason():
    if os.geteuid() != 0:
        return "a control group needs root"
    return None if (GROUPS / "memory.limit_in_bytes").exists() else "no memory controller of version 1 is mounted"


@pytest.fixture
def group():
    folder = GROUPS / f"detent-test-{os.getpid()}"
    folder.mkdir()
    (folder / "memory.limit_in_bytes").write_text(str(LIMIT))
    yield folder
    folder.rmdir()


@pytest.mark.skipif(skip_reason() is not None, reason=str(skip_reason()))
@pytest.mark.parametrize("through_a_shell", [False, True])
def test_a_worker_that_the_kernel_kills_is_recorded_as_out_of_memory(tmp_path, group, through_a_shell):
    worker = [sys.executable, "-c", "data = [bytearray(1 << 20) for _ in range(400)]"]
    if through_a_shell:
        worker = ["sh", "-c", '"$@"; exit $?', "sh", *worker]
    wrapper = [sys.executable, "-m", "determined_launch.wrap_rank", "0", "--", *worker]
    done = subprocess.run(
        ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group), *wrapper],
        env={**os.environ, "DET_RUN_DIR": str(tmp_path)},
        capture_output=True,
        timeout=180,
    )
    assert done.returncode == 137
    record = json.loads((tmp_path / "exits" / "rank-0.json").read_text())
    assert (record["code"], record["cause"], record["time"] > 1e9) == (137, "out_of_memory", True)


@pytest.mark.parametrize(
    ("code", "lines", "has_risen", "expected"),
    [
        (137, [], True, True),
        (137, [], False, False),
        (143, [], True, False),
        (
            1,
            ["RuntimeError: [enforce fail at alloc_cpu.cpp:1] . DefaultCPUAllocator: can't allocate memory"],
            False,
            True,
        ),
        (1, ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"], False, True),
        (1, ["MemoryError"], False, True),
        (0, ["MemoryError"], True, False),
        (1, ["ValueError: no"], True, False),
    ],
)
def test_out_of_memory_is_recognized_by_code_lines_and_counter(code, lines, has_risen, expected):
    class Kills:
        def have_risen(self):
            return has_risen

    assert out_of_memory.is_cause(code, lines, Kills()) is expected


def test_kernel_kills_are_counted_in_memory_events_of_cgroup_version_2(tmp_path, monkeypatch):
    (tmp_path / "own").write_text("0::/task\n")
    (tmp_path / "task").mkdir()
    events = tmp_path / "task" / "memory.events"
    events.write_text("low 0\noom 1\noom_kill 1\n")
    monkeypatch.setattr(out_of_memory, "CGROUPS", tmp_path)
    monkeypatch.setattr(out_of_memory, "OWN_CGROUP", tmp_path / "own")
    kills = out_of_memory.KernelKills()
    assert not kills.have_risen()
    events.write_text("low 0\noom 2\noom_kill 2\n")
    assert kills.have_risen()


def test_kernel_kills_of_the_root_group_are_counted_in_vmstat(tmp_path, monkeypatch):
    (tmp_path / "own").write_text("4:memory:/\n0::/\n")
    (tmp_path / "vmstat").write_text("oom_kill 4\n")
    monkeypatch.setattr(out_of_memory, "CGROUPS", tmp_path)
    monkeypatch.setattr(out_of_memory, "OWN_CGROUP", tmp_path / "own")
    monkeypatch.setattr(out_of_memory, "VMSTAT", tmp_path / "vmstat")
    kills = out_of_memory.KernelKills()
    (tmp_path / "vmstat").write_text("oom_kill 5\n")
    assert kills.have_risen()
