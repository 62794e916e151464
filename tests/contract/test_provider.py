"""Contract tests of every provider: the promises of ``determined_master.providers.provider``."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support import live_processes, stub_agent
from tests.support.slurm import Slurm, running_slurm
from tests.support.slurm_programs import FakeSlurm
from tests.support.waiting import eventually

from determined_launch import pid_lock
from determined_master.providers.command_provider import CommandProvider
from determined_master.providers.local_provider import LocalProvider
from determined_master.providers.master_address import MasterAddress
from determined_master.providers.provider import (
    Instance,
    LaunchFailed,
    Observation,
    ObservedState,
    Provider,
    ReleaseFailed,
)
from determined_master.providers.slurm.slurm_provider import SlurmProvider
from determined_master.settings.pool_settings import PoolSettings, ProviderSettings

ADDRESS = MasterAddress("127.0.0.1", 1, None)
SECRET = "the-join-token"
LAUNCH = """
import os, subprocess, sys
folder, agent, pool = sys.argv[1:4]
if pool == "broken":
    sys.exit("no slots here")
process = subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
open(os.path.join(folder, agent), "w").write(str(process.pid))
"""
TERMINATE = """
import os, signal, sys
file = os.path.join(*sys.argv[1:3])
if os.path.exists(file):
    os.kill(int(open(file).read()), signal.SIGKILL)
    os.remove(file)
"""


@dataclass
class Providing:
    """A provider and the processes that it started."""

    folder: Path
    new: Callable[[], Provider]
    settings: ProviderSettings
    pid_of: Callable[[str], int | None]
    tell_end: Callable[[str], None] | None = None
    """Makes it known that an agent ends in an hour; None where agents never end by themselves at a known time."""
    created: list[Provider] = field(default_factory=list)

    def make(self) -> Provider:
        """Returns the provider of a master that has just started."""
        self.created.append(self.new())
        return self.created[-1]

    async def close(self) -> None:
        """Ends what a test left, and waits for children of this process."""
        live_processes.kill_below(self.folder)
        for provider in self.created:
            for name in ("a", "b", "known", "stray"):
                await provider.release(self.instance(name))
            if isinstance(provider, SlurmProvider):
                await provider.close()

    def instance(self, name: str, pool: str = "p") -> Instance:
        return Instance(name, pool, self.settings)


def command(folder: Path) -> Providing:
    agents = folder / "agents"
    agents.mkdir()
    (folder / "launch.py").write_text(LAUNCH)
    (folder / "terminate.py").write_text(TERMINATE)
    run = (sys.executable, "-S")
    settings = ProviderSettings(
        type="command",
        max_agents=2,
        launch=(*run, str(folder / "launch.py"), str(agents), "{agent_id}", "{pool}"),
        terminate=(*run, str(folder / "terminate.py"), str(agents), "{agent_id}"),
        notice_file=str(folder / "notices"),
        notice_interval=0.1,
    )

    def pid_of(name: str) -> int | None:
        file = agents / name
        return int(file.read_text()) if file.exists() and file.read_text() else None

    def tell_end(name: str) -> None:
        at = datetime.now(UTC) + timedelta(hours=1)
        (folder / "notices").write_text(f"{name} leaves {at.isoformat()} spot notice\n")

    return Providing(folder, lambda: commands(folder), settings, pid_of, tell_end)


def commands(folder: Path) -> CommandProvider:
    return CommandProvider(ADDRESS, folder / "agent-token", os.environ, SECRET)


def local(folder: Path) -> Providing:
    settings = ProviderSettings(type="local", max_agents=2, tasks_as_me=True)
    program = (sys.executable, "-P", stub_agent.__file__)
    return Providing(
        folder,
        lambda: LocalProvider(folder, ADDRESS, os.environ, program=program),
        settings,
        lambda name: pid_lock.holder(folder / "local-agents" / name / "agent.lock"),
    )


def slurm(folder: Path) -> Providing:
    """Recording programs in the place of Slurm's run the pilots."""
    queue = FakeSlurm(folder / "slurm")
    shared = {"folder": str(folder / "shared"), "master_url": "http://127.0.0.1:1"}
    settings = ProviderSettings(type="slurm", max_agents=2, **shared)
    (folder / "agent-token").write_text(SECRET)
    program = (sys.executable, "-P", stub_agent.__file__)

    def new() -> SlurmProvider:
        token, pools = folder / "agent-token", {"p": PoolSettings(pool_name="p", provider=settings)}
        return SlurmProvider(
            *(ADDRESS, token, queue.environment, pools, lambda: "cluster"), program=program, look_seconds=0.1
        )

    def pid_of(name: str) -> int | None:
        return pid_lock.holder(folder / "slurm" / "tmp" / f"detent-{os.getuid()}" / name / "agent.lock")

    def tell_end(name: str) -> None:
        (job,) = (number for number, job in queue.jobs.items() if job["Comment"] == f"detent:cluster:{name}")
        queue.change(job, TimeLeft="1:00:00")

    return Providing(folder, new, settings, pid_of, tell_end)


def real_slurm(folder: Path) -> Providing:
    """Slurm itself runs the pilots."""
    running = Slurm(Path(os.environ["SLURM_CONF"]).parent)
    shared = {"folder": str(folder / "shared"), "master_url": "http://127.0.0.1:1"}
    settings = ProviderSettings(type="slurm", max_agents=2, **shared)
    (folder / "agent-token").write_text(SECRET)
    (folder / "SITE.yaml").write_text(f"node_scratch: {folder}/scratch\n")
    settings = settings.model_copy(update={"site": str(folder / "SITE.yaml")})
    program = (sys.executable, "-P", stub_agent.__file__)

    def new() -> SlurmProvider:
        token, pools = folder / "agent-token", {"p": PoolSettings(pool_name="p", provider=settings)}
        return SlurmProvider(*(ADDRESS, token, os.environ, pools, lambda: "real"), program=program, look_seconds=0.5)

    def pid_of(name: str) -> int | None:
        return pid_lock.holder(folder / "scratch" / f"detent-{os.getuid()}" / name / "agent.lock")

    def tell_end(name: str) -> None:
        job = running.command("squeue", "--noheader", f"--name=detent:real:{name}", "--format=%i").strip()
        running.command("scontrol", "update", f"JobId={job}", "TimeLimit=60")

    return Providing(folder, new, settings, pid_of, tell_end)


@pytest.fixture(
    params=[command, local, slurm, pytest.param(real_slurm, marks=[pytest.mark.long, pytest.mark.budget(30, "Slurm")])],
    ids=["command", "local", "slurm", "real-slurm"],
)
async def providing(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Providing]:
    if request.param is real_slurm:
        monkeypatch.setenv("SLURM_CONF", request.getfixturevalue("slurm_of_tests").environment["SLURM_CONF"])
    created = request.param(tmp_path)
    yield created
    await created.close()


@pytest.fixture(scope="module")
def slurm_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Yields a real Slurm."""
    with running_slurm(tmp_path_factory.mktemp("s")) as running:
        yield running


@pytest.fixture
async def locally(tmp_path: Path) -> AsyncIterator[Providing]:
    created = local(tmp_path)
    yield created
    await created.close()


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists() and "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()


async def start_agent(providing: Providing, provider: Provider, name: str) -> int:
    await provider.want(providing.instance(name))
    pid = await eventually(lambda: providing.pid_of(name))
    assert pid is not None
    return pid


async def test_an_agent_exists_from_its_order_to_its_release_and_the_others_stay(providing: Providing):
    provider = providing.make()
    first, second = await start_agent(providing, provider, "a"), await start_agent(providing, provider, "b")
    assert await gone_of(provider, [providing.instance("a"), providing.instance("b")]) == {}
    await provider.release(providing.instance("a"))
    await eventually(lambda: not is_alive(first))
    assert is_alive(second)
    await provider.release(providing.instance("b"))
    await eventually(lambda: not is_alive(second))


async def test_releasing_an_agent_that_does_not_exist_is_no_error(providing: Providing):
    provider = providing.make()
    await provider.release(providing.instance("never"))
    await start_agent(providing, provider, "a")
    for _ in range(2):
        await provider.release(providing.instance("a"))


async def test_the_next_master_finds_an_agent_and_ends_it(providing: Providing):
    pid = await start_agent(providing, providing.make(), "a")
    later = providing.make()
    assert await gone_of(later, [providing.instance("a")]) == {}
    await later.release(providing.instance("a"))
    await eventually(lambda: not is_alive(pid))


async def test_a_failed_launch_reports_the_reason(providing: Providing):
    provider, instance = providing.make(), providing.instance("a", pool="broken")

    async def failure() -> str:
        try:
            await provider.want(instance)
        except LaunchFailed as error:
            return str(error)
        return str(await eventually(lambda: gone(provider, instance)))

    assert (await failure()).endswith("(exit 1): no slots here")
    await provider.release(instance)


async def test_an_agent_that_ends_at_a_known_time_says_when_and_why(providing: Providing):
    provider, instance = providing.make(), providing.instance("a")
    await start_agent(providing, provider, "a")

    async def departure() -> Observation | None:
        seen = (await provider.observe([instance])).get("a")
        return seen if seen is not None and seen.leaves_at is not None else None

    assert await departure() is None
    if providing.tell_end is None:
        return
    providing.tell_end("a")
    seen = await eventually(departure)
    assert seen is not None
    assert seen.leaves_at is not None
    assert (seen.state, bool(seen.reason)) == (ObservedState.RUNNING, True)
    assert timedelta(minutes=58) < seen.leaves_at - datetime.now(UTC) <= timedelta(minutes=61)


async def gone(provider: Provider, instance: Instance) -> str | None:
    return (await gone_of(provider, [instance])).get(instance.agent_id)


async def gone_of(provider: Provider, instances: Sequence[Instance]) -> dict[str, str]:
    """Returns the instances that the provider sees as ended, each with the reason."""
    seen = await provider.observe(instances)
    return {name: each.reason for name, each in seen.items() if each.state is ObservedState.GONE}


async def test_a_local_agent_that_ends_by_itself_is_noticed_by_any_master(locally: Providing):
    provider = locally.make()
    pid = await start_agent(locally, provider, "a")
    os.kill(pid, signal.SIGKILL)
    assert await eventually(lambda: gone(provider, locally.instance("a"))) == "its process ended (signal SIGKILL)"
    assert await gone(locally.make(), locally.instance("a")) == "its process is gone"


async def test_a_local_agent_gets_the_umask_of_the_user_and_none_of_our_variables(
    locally: Providing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DET_MASTER_INITIAL_USER_PASSWORD", SECRET)
    program = (sys.executable, "-P", stub_agent.__file__)
    locally.new = lambda: LocalProvider(tmp_path, ADDRESS, os.environ, umask=0o027, program=program)
    pid = await start_agent(locally, locally.make(), "a")
    assert "Umask:\t0027" in Path(f"/proc/{pid}/status").read_text()
    variables = live_processes.environ_of(pid)
    assert {name for name in variables if name.startswith("DET_")} == {"DET_AGENT_END_WITHOUT_MASTER_SECONDS"}
    assert SECRET not in " ".join([*variables.values(), *live_processes.command_of(pid)])


async def test_a_local_agent_that_no_row_names_is_ended(locally: Providing):
    """Such an agent was started after the backup that the database was restored from."""
    known, stray = [await start_agent(locally, locally.make(), name) for name in ("known", "stray")]
    await locally.make().observe([locally.instance("known")])
    await eventually(lambda: not is_alive(stray))
    assert is_alive(known)


def shell(script: str, **changes: object) -> Instance:
    words = ("sh", "-c", script, "{agent_id}", "{token_file}", "{master}")
    values = {"type": "command", "max_agents": 1, "launch": words, "terminate": words}
    return Instance("a", "p", ProviderSettings.model_validate(values | changes))


async def test_a_command_that_hangs_is_killed_with_what_it_started(tmp_path: Path):
    instance = shell(f"sleep 60 & echo $! > {tmp_path}/pid; wait", command_timeout=1.5)
    with pytest.raises(LaunchFailed, match=r"did not end within 1\.5 s and was killed") as failed:
        await commands(tmp_path).want(instance)
    assert failed.value.may_exist
    await eventually(lambda: not is_alive(int((tmp_path / "pid").read_text())), within=2.0)
    with pytest.raises(ReleaseFailed, match="terminate command did not end within"):
        await commands(tmp_path).release(instance)


async def test_a_command_ends_with_its_master(tmp_path: Path):
    order = asyncio.create_task(commands(tmp_path).want(shell(f"echo $$ > {tmp_path}/pid; exec sleep 600")))
    pid = await eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    order.cancel()
    with pytest.raises(asyncio.CancelledError):
        await order
    assert not is_alive(int(pid))


async def test_a_program_that_a_command_leaves_behind_is_not_waited_for(tmp_path: Path):
    began = time.monotonic()
    await commands(tmp_path).want(shell(f"sleep 600 & echo $! > {tmp_path}/pid"))
    assert time.monotonic() - began < 60
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


async def test_the_last_line_of_much_output_is_shown_without_the_token(tmp_path: Path):
    script = f"yes | head -c 1000000; echo 'cannot join with {SECRET}' >&2; exit 7"
    with pytest.raises(LaunchFailed) as failed:
        await commands(tmp_path).want(shell(script))
    assert str(failed.value) == "the launch command failed (exit 7): cannot join with ***"


async def test_a_command_that_a_signal_without_a_name_killed_is_a_failed_launch(tmp_path: Path):
    with pytest.raises(LaunchFailed, match=r"the launch command failed \(signal 35\)"):
        await commands(tmp_path).want(shell("kill -35 $$"))


async def test_a_command_gets_names_and_files_but_no_secret(tmp_path: Path):
    (tmp_path / "agent-token").write_text(SECRET)
    os.environ["DET_MASTER_INITIAL_USER_PASSWORD"] = SECRET
    try:
        await commands(tmp_path).want(shell(f'echo "$0 $1 $2" > {tmp_path}/words; env > {tmp_path}/variables'))
    finally:
        del os.environ["DET_MASTER_INITIAL_USER_PASSWORD"]
    assert (tmp_path / "words").read_text() == f"a {tmp_path}/agent-token http://127.0.0.1:1\n"
    variables = (tmp_path / "variables").read_text()
    assert f"DET_PROVIDER_TOKEN_FILE={tmp_path}/agent-token" in variables
    assert SECRET not in variables


async def test_a_missing_program_is_named_in_the_failure(tmp_path: Path):
    instance = shell("", launch=("/no/such/program",), terminate=("/no/such/program",))
    with pytest.raises(LaunchFailed, match=r"cannot run the launch command: .*No such file"):
        await commands(tmp_path).want(instance)
    with pytest.raises(ReleaseFailed, match=r"cannot run the terminate command: .*No such file"):
        await commands(tmp_path).release(instance)


async def test_instances_that_earlier_settings_started_keep_their_own_notices(tmp_path: Path):
    provider, now = commands(tmp_path), tmp_path / "now"
    (tmp_path / "before").write_text("old gone it was reclaimed\nnew gone it was reclaimed\n")
    now.write_text("old gone it is over\nnew gone it is over\n")
    settings = shell("true").settings
    instances = [
        Instance(name, "p", settings.model_copy(update={"notice_file": str(tmp_path / file)}))
        for name, file in (("old", "before"), ("new", "now"))
    ]

    async def reasons() -> dict[str, str] | None:
        seen = await gone_of(provider, instances)
        return seen if len(seen) == 2 else None

    assert await eventually(reasons) == {"old": "it was reclaimed", "new": "it is over"}


async def test_a_notice_command_that_hangs_is_killed_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    provider = commands(tmp_path)
    instance = shell("true", notice_command=("sleep", "600"), command_timeout=0.2)
    await provider.observe([instance])
    await eventually(lambda: "the notice command did not end within 0.2 s and was killed" in caplog.messages)
