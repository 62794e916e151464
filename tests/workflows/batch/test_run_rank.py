"""The program that runs a rank on a node: codes, data, signals, variables, the key."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.support.recorded_jobs import project_in
from tests.support.small_disk import small_disk
from tests.support.waiting import wait_until

from determined_workflows.batch import job_record


@dataclass
class Node:
    """A node with one disk, on which ranks of a job run as Slurm starts them."""

    folder: Path
    record: Path
    plan: dict[str, Any]
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def disk(self) -> Path:
        return self.folder / "disk" / "25"

    def start(self, *words: str, rank: int = 0) -> subprocess.Popen[str]:
        (self.record / "task" / "job.json").write_text(json.dumps(self.plan))
        own = {
            "DETENT_RECORD": str(self.record),
            "DETENT_ENDS": str(self.folder),
            "DETENT_OWN_TMPDIR": "1",
            "SLURM_TMPDIR": str(self.disk),
            "SLURM_PROCID": str(rank),
            "SLURM_NODEID": "1",
            "SLURMD_NODENAME": "node2",
            "NNODES": "2",
            "HOME": str(self.folder),
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("WANDB", "SLURM"))}
        argv = [sys.executable, str(self.record / "task" / "run_rank.py"), *words]
        pipe = subprocess.PIPE
        return subprocess.Popen(argv, env=kept | own | self.variables, stdout=pipe, stderr=pipe, text=True)

    def run(self, command: str, *words: str, rank: int = 0) -> tuple[int, str, str]:
        (self.record / "command.sh").write_text(command + "\n")
        process = self.start(*words, rank=rank)
        output, messages = process.communicate(timeout=30)
        return process.returncode, output, messages

    def end(self, rank: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / f"rank-0-{rank}.json").read_text())
        return found

    def pack(self, **files: str) -> None:
        archive = self.folder / "data.tar"
        with tarfile.open(archive, "w") as packed:
            for name, text in files.items():
                (self.folder / name).write_text(text)
                packed.add(self.folder / name, arcname=name)
        self.plan["data"] = {"archive": str(archive), "digest": "ab" * 32, "paths": list(files)}


@pytest.fixture
def node(tmp_path: Path) -> Node:
    folder, _ = job_record.new_folder(project_in(tmp_path), "standard", "x")
    plan = {"data": None, "kill_wait": 2, "is_general": False}
    job_record.write_programs(folder, "", "", plan)
    return Node(tmp_path, folder, plan)


@pytest.mark.parametrize(
    ("command", "code"),
    [("true", 0), ("exit 3", 3), ("nosuchprogram", 127), ("kill -KILL $$", 137), ("false && true", 1)],
)
def test_the_code_of_the_command_is_that_of_the_rank(node: Node, command: str, code: int) -> None:
    assert node.run(command)[0] == code
    assert (node.end()["code"], node.end()["host"], node.end()["rank"]) == (code, "node2", 0)


def test_words_are_run_as_a_program_without_bash(node: Node) -> None:
    assert node.run("", "--", "printf", "%s", "$HOME")[1] == "$HOME"
    code, _, messages = node.run("", "--", "nosuchprogram")
    assert code == 127
    assert "det batch: node2: nosuchprogram: command not found" in messages


def test_the_general_form_has_the_number_of_nodes_and_the_rank_of_the_node(node: Node) -> None:
    text = 'echo "${WORLD_SIZE-unset} ${NODE_RANK-unset}"'
    assert node.run(text)[1] == "unset unset\n"
    node.plan["is_general"] = True
    assert node.run(text)[1] == "2 1\n"


def test_the_key_is_read_on_the_node_and_written_nowhere(node: Node) -> None:
    (node.folder / "wandb_credentials.txt").write_text("secretkey\n")
    code, output, messages = node.run('[ "${#WANDB_API_KEY}" = 9 ]')
    assert (code, output, messages) == (0, "", "")
    kept = [path for path in node.folder.rglob("*") if path.is_file() and path.name != "wandb_credentials.txt"]
    assert not [path for path in kept if "secretkey" in path.read_text(errors="replace")]


def test_data_is_unpacked_for_the_program_and_removed_after_it(node: Node) -> None:
    node.pack(a="one", b="two")
    assert node.run("cat $SLURM_TMPDIR/a $SLURM_TMPDIR/b")[1] == "onetwo"
    assert list((node.folder / "disk").iterdir()) == []


def test_a_rank_that_is_ended_while_data_is_unpacked_starts_no_program(node: Node) -> None:
    node.pack(a="one")
    (node.record / "command.sh").write_text("touch $HOME/began")
    node.disk.parent.mkdir(mode=0o700)
    with node.disk.with_name("25.setup").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as a rank that unpacks does
        rank = node.start()
        # The kernel lists those who wait for a lock behind an arrow.
        wait_until(lambda: f"-> FLOCK  ADVISORY  WRITE {rank.pid} " in Path("/proc/locks").read_text())
        rank.send_signal(signal.SIGTERM)
    assert "the job was ended before the program began" in rank.communicate(timeout=30)[1]
    assert rank.returncode == node.end()["code"] == 143
    assert not (node.folder / "began").exists()
    assert list(node.disk.parent.iterdir()) == []


def test_the_last_rank_of_a_node_removes_the_data(node: Node) -> None:
    node.pack(a="one")
    (node.record / "command.sh").write_text(
        "touch $HOME/here$SLURM_PROCID; until [ -e $HOME/go$SLURM_PROCID ]; do sleep 0.05; done; cat $SLURM_TMPDIR/a"
    )
    ranks = [node.start(rank=rank) for rank in range(3)]
    # A rank that has not begun does not use the data yet, so that the end of the others removes it.
    wait_until(lambda: all((node.folder / f"here{rank}").exists() for rank in range(3)))
    for rank, process in enumerate(ranks):
        assert (node.disk / "a").exists()
        (node.folder / f"go{rank}").touch()
        assert process.communicate(timeout=30)[0] == "one"
    assert not node.disk.exists()


def test_data_of_a_rank_that_was_killed_is_removed_by_the_cleaning_and_by_the_next_job(node: Node) -> None:
    node.pack(a="one")
    for clean in (("--clean",), ("--", "true")):
        (node.record / "command.sh").write_text("exec sleep 60")
        process = node.start()
        wait_until(lambda: (node.disk / "a").exists())
        for pid in (process.pid, *_children(process.pid)):
            os.kill(pid, signal.SIGKILL)
        process.communicate()
        assert (node.disk / "a").exists()
        if clean != ("--clean",):
            node.variables["SLURM_TMPDIR"] = str(node.folder / "disk" / "26")
        assert node.run("", *clean)[0] == 0
        assert list((node.folder / "disk").iterdir()) == []


def test_abandoned_data_in_the_folder_of_a_site_is_removed_and_a_file_of_somebody_else_refuses(node: Node) -> None:
    node.pack(a="one")
    site = node.folder / "site"
    site.mkdir()
    node.variables |= {"SLURM_TMPDIR": str(site), "DETENT_OWN_TMPDIR": ""}
    (node.record / "command.sh").write_text("exec sleep 60")
    process = node.start()
    wait_until(lambda: (site / "a").exists() and _children(process.pid))
    for pid in (process.pid, *_children(process.pid)):
        os.kill(pid, signal.SIGKILL)
    process.communicate()
    node.plan["data"]["digest"] = "cd" * 32
    assert node.run("cat $SLURM_TMPDIR/a")[:2] == (0, "one")
    assert list(site.iterdir()) == []
    (site / "a").write_text("theirs")
    assert "a exists already, and not as data of this job" in node.run("true")[2]
    assert [path.name for path in site.iterdir()] == ["a"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a disk needs root")
def test_a_full_disk_of_a_node_is_named_and_nothing_is_left_on_it(node: Node) -> None:
    node.pack(a="one" * 1_000_000)
    with small_disk(node.folder / "disk", "1m") as disk:
        code, _, messages = node.run("true")
        assert code == 1
        assert "det batch: node2: the disk of this node is full" in messages
        assert list(disk.path.iterdir()) == []


def test_an_archive_that_cannot_be_unpacked_is_named_and_leaves_nothing(node: Node) -> None:
    node.pack(a="one")
    Path(node.plan["data"]["archive"]).write_text("no archive at all")
    code, _, messages = node.run("true")
    assert code == 1
    assert "data.tar cannot be unpacked" in messages
    assert "data.tar cannot be unpacked" in node.end()["failure"]
    assert not node.disk.exists()


def test_a_program_that_saves_on_a_signal_keeps_its_code(node: Node) -> None:

    text = "trap 'echo saved; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    process = node.start("--", "bash", "-c", text)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    (child,) = _children(process.pid)
    # Slurm sends it to all processes of the step.
    for pid in (process.pid, child):
        os.kill(pid, signal.SIGTERM)
    assert process.wait(30) == 7
    assert process.stdout.read() == "saved\n"
    assert node.end()["signals"] == ["SIGTERM"]
    process.communicate()


@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGUSR1, signal.SIGTERM]], ids=["end", "requeue"])
def test_the_data_of_a_program_that_ignores_signals_is_removed_before_it_is_killed(
    node: Node, signals: list[signal.Signals]
) -> None:
    node.pack(a="one")
    process = node.start("--", "bash", "-c", "trap '' TERM; echo ready; exec sleep 60")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    (child,) = _children(process.pid)
    for number in signals:
        os.kill(process.pid, number)
    wait_until(lambda: not node.disk.exists())
    assert node.end()["failure"] == "the program did not end in time after SIGTERM"
    assert node.end()["signals"] == [number.name for number in signals]
    os.kill(child, signal.SIGKILL)
    process.communicate(timeout=30)


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
