"""Pilots from their submission to their end, with recording programs in the place of Slurm's."""

import asyncio
import os
import stat
import time

import pytest
from tests.support.tls_server import written_pair
from tests.support.waiting import eventually

from determined_master.providers.provider import LaunchFailed, ObservedState, ReleaseFailed
from determined_master.providers.slurm.client import SlurmClient

GONE, QUEUED, RUNNING = ObservedState.GONE, ObservedState.QUEUED, ObservedState.RUNNING


async def reason_of_failure(provider, instance) -> str:
    with pytest.raises(LaunchFailed) as failed:
        await provider.want(instance)
    return str(failed.value)


async def test_a_pilot_is_submitted_with_identity_options_and_private_files(pilots, slurm):
    provider = pilots.make()
    await provider.want(pilots.instance(sbatch={"partition": "main", "time": "1:00:00", "contiguous": True}))
    (call,) = slurm.calls("sbatch")
    folder = pilots.folder / "shared" / "c" / "pilots" / "a"
    assert call == [
        *("sbatch", "--parsable", "--no-requeue", "--nodes=1", "--ntasks-per-node=1", "--cpus-per-task=1"),
        *("--partition=main", "--time=1:00:00", "--contiguous", f"--chdir={folder}", "--comment=detent:c:a"),
        *("--job-name=detent:c:a", f"--output={folder}/pilot.log", "--open-mode=append", f"{folder}/pilot.sh"),
    ]
    token = pilots.folder / "shared" / "c" / "agent-token"
    assert (token.read_text(), stat.S_IMODE(token.stat().st_mode)) == ("the-join-token", 0o600)
    assert stat.S_IMODE(token.parent.stat().st_mode) == 0o700
    assert "the-join-token" not in str(slurm.calls()) + (folder / "pilot.sh").read_text()


async def test_a_pilot_that_waits_says_why_and_when_it_may_start(pilots, slurm, seen):
    slurm.set(held=True)
    provider, instance = pilots.make(), pilots.instance()
    await provider.want(instance)
    found = await eventually(lambda: seen(provider, instance))
    assert (found.state, found.reason) == (QUEUED, "Slurm job 1: waits for resources (Resources)")
    slurm.change("1", StartTime="2030-01-01T00:00:00", Reason="Priority")
    await eventually(lambda: found_reason(provider, instance, "Priority"))
    assert (await seen(provider, instance)).start_estimate.year == 2030


async def found_reason(provider, instance, words) -> bool:
    found = (await provider.observe([instance])).get(instance.agent_id)
    return found is not None and words in found.reason


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"State": "CANCELLED"}, "Slurm job 1 was cancelled outside Detent"),
        ({"State": "TIMEOUT"}, "Slurm job 1 reached its time limit"),
        ({"State": "PREEMPTED"}, "Slurm job 1 was preempted by Slurm"),
        ({"State": "NODE_FAIL"}, "node node1 failed (Slurm job 1)"),
    ],
)
async def test_a_final_state_is_believed_at_once_and_wakes_the_loop(pilots, slurm, seen, change, words):
    provider, instance = pilots.make(), pilots.instance()
    await provider.want(instance)
    await eventually(lambda: seen(provider, instance))
    before = pilots.changes
    slurm.change("1", **change)
    await eventually(lambda: pilots.changes > before)
    found = await seen(provider, instance)
    assert (found.state, found.reason, found.origin) == (GONE, words, "Slurm job 1")


async def test_a_pilot_that_dies_says_its_last_line(pilots, seen):
    provider = pilots.make(program=("sh", "-c", "echo first; echo 'no \033space left'; exit 7", "agent"))
    instance = pilots.instance()
    await provider.want(instance)
    await eventually(lambda: found_reason(provider, instance, "ended"))
    found = await seen(provider, instance)
    assert (found.state, found.reason) == (GONE, "the agent of Slurm job 1 ended (exit 7): no space left")
    await provider.release(instance)
    assert (pilots.folder / "shared/c/pilots/a/pilot.log").exists(), (
        "the output is kept for whoever looks for the cause"
    )


async def test_an_absent_job_is_gone_after_two_answers_and_not_after_one(pilots, slurm, seen):
    provider, instance = pilots.make(look_seconds=600), pilots.instance()
    await provider.want(instance)
    await eventually(lambda: seen(provider, instance))
    slurm.remove("1")
    await provider.looks.fresh()
    assert (await seen(provider, instance)).state is RUNNING
    await provider.looks.fresh()
    found = await seen(provider, instance)
    assert (found.state, found.reason) == (GONE, "Slurm job 1 is not in Slurm's queue any more")


async def test_a_slurm_that_does_not_answer_ends_nothing_and_blocks_nothing(pilots, slurm, seen):
    client = SlurmClient(slurm.environment)
    provider, instance = pilots.make(client=client), pilots.instance()
    await provider.want(instance)
    await eventually(lambda: seen(provider, instance))
    usual, client.timeout = client.timeout, 1
    slurm.set(hangs="squeue")
    looks = len(slurm.calls("squeue"))
    await eventually(lambda: len(slurm.calls("squeue")) >= looks + 2)
    began = time.monotonic()
    assert (await seen(provider, instance)).state is RUNNING
    assert time.monotonic() - began < client.timeout
    with pytest.raises(ReleaseFailed, match="Slurm does not answer: squeue took longer than 1 s"):
        await provider.release(instance)
    slurm.set(hangs="")
    client.timeout = usual
    await provider.release(instance)
    assert slurm.jobs["1"]["State"] == "CANCELLED"


async def test_a_job_that_slurm_loses_is_submitted_again_and_the_other_owner_of_its_id_is_left_alone(pilots, slurm):
    """The number of the lost job goes to somebody else's."""
    slurm.set(loses=1)
    provider, instance = pilots.make(), pilots.instance()
    wanted = asyncio.create_task(provider.want(instance))
    await eventually(lambda: slurm.calls("sbatch"))
    foreign = slurm.add("somebody else's")
    await wanted
    assert (foreign, len(slurm.calls("sbatch")), slurm.jobs["2"]["Comment"]) == ("1", 2, "detent:c:a")
    await provider.release(instance)
    assert (slurm.jobs["1"]["State"], slurm.jobs["2"]["State"]) == ("RUNNING", "CANCELLED")
    assert [call[1:] for call in slurm.calls("scancel")] == [["--name=detent:c:a", "2"]]


async def test_a_slurm_that_loses_every_job_is_a_failed_launch(pilots, slurm):
    slurm.set(loses=99)
    assert "Slurm has lost 3 jobs right after their submission" in await reason_of_failure(
        pilots.make(), pilots.instance()
    )


async def test_a_job_that_is_lost_while_slurm_is_away_is_gone_after_two_answers(pilots, slurm, seen):
    slurm.set(loses=1, fails={"squeue": "Unable to contact slurm controller (connect failure)"})
    provider, instance = pilots.make(), pilots.instance()
    await provider.want(instance)
    assert await seen(provider, instance) is None
    slurm.set(fails={})
    found = await eventually(lambda: seen(provider, instance))
    assert (found.state, found.reason) == (GONE, "Slurm has no job of this agent")


async def test_a_submission_that_takes_too_long_may_exist_and_its_late_job_is_cancelled(pilots, slurm):
    client = SlurmClient(slurm.environment)
    provider, instance = pilots.make(client=client), pilots.instance()
    await provider.observe([])
    usual, client.timeout = client.timeout, 3
    slurm.set(hangs="sbatch")
    with pytest.raises(LaunchFailed, match="sbatch took longer than") as failed:
        await provider.want(instance)
    assert failed.value.may_exist
    client.timeout = usual
    await provider.release(instance)
    await provider.observe([])
    job = slurm.add("detent:c:a")
    await provider.looks.fresh()
    assert slurm.jobs[job]["State"] == "CANCELLED"


@pytest.mark.parametrize(
    ("sbatch", "partitions", "words"),
    [
        ({"partition": "mian"}, [], 'there is no partition "mian"; did you mean "main"?'),
        ({"partition": "shut"}, [], "the partition shut is DOWN"),
        ({"partition": "short", "time": "2:00:00"}, [], "is above the 00:05:00 of the partition short"),
        ({}, [["a", "NO", "UNLIMITED", "UP"]], "no partition is the default"),
    ],
)
async def test_what_slurm_would_accept_and_never_start_is_refused(pilots, slurm, sbatch, partitions, words):
    usual = [["main", "YES", "UNLIMITED", "UP"], ["shut", "NO", "1:00", "DOWN"], ["short", "NO", "00:05:00", "UP"]]
    slurm.set(partitions=partitions or usual)
    assert words in await reason_of_failure(pilots.make(), pilots.instance(sbatch=sbatch))
    assert not slurm.calls("sbatch")


async def test_a_slurm_that_does_not_answer_before_a_submission_leaves_nothing_to_end(pilots, slurm):
    slurm.set(fails={"scontrol": "Unable to contact slurm controller (connect failure)"})
    with pytest.raises(LaunchFailed, match="Slurm does not answer") as failed:
        await pilots.make().want(pilots.instance())
    assert not failed.value.may_exist


async def test_the_options_of_a_pool_are_checked_when_it_starts(pilots, slurm, caplog):
    slurm.set(partitions=[["main", "YES", "UNLIMITED", "DOWN"]])
    await pilots.make().observe([])
    await eventually(lambda: "pool p cannot start agents: the partition main is DOWN" in caplog.text)


async def test_a_pilot_gets_the_masters_environment_without_secrets_slurm_and_what_is_true_there_alone(pilots, slurm):
    ours = {"DET_MASTER_INITIAL_USER_PASSWORD": "secret", "SBATCH_ACCOUNT": "x", "SLURM_NTASKS": "4", "TMPDIR": "/mine"}
    client = SlurmClient(slurm.environment | ours | {"CUDA_VISIBLE_DEVICES": "0", "LANG": "C", "PYTHONPATH": "/p"})
    provider = pilots.make(client=client, program=("sh", "-c", "env", "agent"))
    await provider.want(pilots.instance())
    log = pilots.folder / "shared/c/pilots/a/pilot.log"
    found = await eventually(lambda: "PYTHONPATH=/p" in log.read_text() and log.read_text())
    names = {line.partition("=")[0] for line in found.splitlines()}
    assert "LANG" in names
    assert not names & (ours.keys() | {"CUDA_VISIBLE_DEVICES"})


async def test_the_files_of_pilots_that_ended_long_ago_are_removed_when_the_master_starts(pilots):
    folders = {name: pilots.folder / "shared/c/pilots" / name for name in ("known", "old", "new")}
    for name, folder in folders.items():
        folder.mkdir(parents=True)
        if name != "new":
            os.utime(folder, (0, 0))
    await pilots.make().observe([pilots.instance("known")])
    await eventually(lambda: not folders["old"].exists())
    assert folders["known"].exists()
    assert folders["new"].exists()


async def test_a_missing_sbatch_and_a_refusal_of_slurm_are_said(pilots, slurm, tmp_path):
    slurm.set(fails={"sbatch": "Batch job submission failed: Invalid account"})
    assert await reason_of_failure(pilots.make(), pilots.instance()) == (
        "sbatch: Batch job submission failed: Invalid account"
    )
    client = SlurmClient({"PATH": str(tmp_path)})
    words = await reason_of_failure(pilots.make(client=client), pilots.instance())
    assert words == "there is no scontrol on the master's machine, so it cannot submit to Slurm"


async def test_a_master_on_loopback_is_refused_unless_its_address_is_said(pilots):
    words = await reason_of_failure(pilots.make(), pilots.instance(master_url=""))
    assert words.startswith(
        "the master listens on this machine alone, so jobs on other nodes cannot reach it; start it"
    )
    await pilots.make(host="10.0.0.1").want(pilots.instance("b", master_url=""))


async def test_a_pilot_pins_a_copy_of_the_masters_certificate(pilots, tmp_path):
    pair = written_pair(tmp_path, "login.example")
    await pilots.make(host="10.0.0.1", certificate=pair.certificate).want(pilots.instance(master_url=""))
    copy = pilots.folder / "shared" / "c" / "master.crt"
    assert copy.read_text() == pair.certificate.read_text()
    script = (pilots.folder / "shared/c/pilots/a/pilot.sh").read_text()
    assert f"--master-cert-file {copy} --master-cert-name login.example" in script
    assert "--master https://10.0.0.1:1 " in script


async def test_a_site_profile_gives_options_and_set_up_lines(pilots, slurm):
    site = pilots.folder / "SITE.yaml"
    site.write_text("setup: [module load cuda]\nsbatch: {qos: normal}\nnode_scratch: /disk\n")
    await pilots.make().want(pilots.instance(site=str(site)))
    assert "--qos=normal" in slurm.calls("sbatch")[0]
    script = (pilots.folder / "shared/c/pilots/a/pilot.sh").read_text()
    assert "\nmodule load cuda\n" in script
    assert "${SLURM_TMPDIR:-/disk}" in script


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sbatch: {comment: x}\n", 'SITE.yaml:1:10: "comment" cannot be set here'),
        ("setpu: []\n", 'unknown key "setpu"; did you mean "setup"?'),
        (None, "there is no file"),
    ],
)
async def test_a_wrong_site_profile_is_a_failed_launch_with_its_place(pilots, text, words):
    site = pilots.folder / "SITE.yaml"
    if text is not None:
        site.write_text(text)
    assert words in await reason_of_failure(pilots.make(), pilots.instance(site=str(site)))


async def test_jobs_of_another_cluster_and_known_ones_stay_and_orphans_are_cancelled(pilots, slurm):
    known, orphan, foreign = (slurm.add(f"detent:{name}") for name in ("c:known", "c:orphan", "other:a"))
    provider = pilots.make()
    await provider.observe([pilots.instance("known")])
    await eventually(lambda: slurm.jobs[orphan]["State"] == "CANCELLED")
    await provider.looks.fresh()
    assert [slurm.jobs[job]["State"] for job in (known, foreign)] == ["RUNNING", "RUNNING"]


async def test_a_pilot_that_was_just_submitted_is_no_orphan(pilots, slurm):
    provider = pilots.make()
    await provider.observe([])
    await provider.want(pilots.instance())
    await provider.looks.fresh()
    await provider.observe([pilots.instance()])
    await provider.looks.fresh()
    assert slurm.jobs["1"]["State"] == "RUNNING"


async def test_looks_do_not_grow_with_the_number_of_pilots(pilots, slurm):
    slurm.set(held=True)
    provider = pilots.make(look_seconds=600)
    instances = [pilots.instance(f"a{number}") for number in range(20)]
    await asyncio.gather(*(provider.want(each) for each in instances))
    assert len(slurm.calls("sbatch")) == 20
    assert len(slurm.calls("squeue")) < 10
    assert len(slurm.calls("scontrol")) == 1
    looks = len(slurm.calls("squeue"))
    for _ in range(50):
        await provider.observe(instances)
    await asyncio.gather(*(provider.release(each) for each in instances))
    assert len(slurm.calls("squeue")) <= looks + 2
    assert {job["State"] for job in slurm.jobs.values()} == {"CANCELLED"}


async def test_a_master_without_a_pool_of_slurm_asks_nothing(pilots, slurm):
    provider = pilots.make(pools={})
    assert await provider.observe([]) == {}
    await asyncio.sleep(0)
    assert not slurm.calls()


async def test_a_look_at_pilots_one_of_which_ends_meanwhile_sees_the_others(pilots, slurm, seen):
    provider, first, second = pilots.make(look_seconds=600), pilots.instance(), pilots.instance("b")
    for instance in (first, second):
        await provider.want(instance)
    await provider.observe([first, second])
    see = provider._see  # noqa: SLF001

    async def ends_the_other(*arguments):
        await see(*arguments)
        provider._known = {"a": first}  # noqa: SLF001

    provider._see = ends_the_other  # noqa: SLF001
    for number in "12":
        slurm.change(number, State="FAILED")
    await provider.looks.fresh()
    assert (await seen(provider, first)).state is GONE
