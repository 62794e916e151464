"""The provider of type ``slurm``: submits pilots, cancels them, and says what Slurm does with them.

A pilot is known by its comment, ``detent:CLUSTER:AGENT``, and never by its job id: a slurmctld that dies may lose a job
and give its id to somebody else's.
"""

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from determined.errors import DeterminedError
from determined_master.clock import SystemClock
from determined_master.providers.master_address import MasterAddress
from determined_master.providers.provider import (
    Instance,
    LaunchFailed,
    Observation,
    ObservedState,
    ReleaseFailed,
)
from determined_master.providers.slurm import pilot_script, queue
from determined_master.providers.slurm.client import NoAnswer, SlurmClient, SlurmError
from determined_master.providers.slurm.looks import BUSY_SECONDS, Look, Looks
from determined_master.providers.slurm.pilot_files import OUTPUT, PilotFiles, default_folder
from determined_master.providers.slurm.pilot_script import Pilot
from determined_master.settings import slurm_options
from determined_master.settings.pool_settings import PoolSettings, ProviderSettings
from determined_workflows import site_profile
from determined_workflows.batch import partitions
from determined_workflows.site_profile import SiteProfile

logger = logging.getLogger(__name__)

PROGRAM = (sys.executable, "-P", "-m", "determined_agent")
WITHOUT_MASTER_SECONDS = 600.0
"""Time without a master after which a pilot without tasks ends."""
MAX_SUBMISSIONS = 3
"""Times that a pilot is submitted that Slurm loses."""
ABSENT_LOOKS = 2
"""Good answers without a job after which it is gone."""
JITTER = timedelta(seconds=5)
"""Change of the time at which a job ends that is none: Slurm rounds to seconds."""
PARTITIONS_SECONDS = 10.0
"""Time for which the partitions are not asked for again: pilots are submitted in groups."""


class SlurmProvider:
    def __init__(
        self,
        address: MasterAddress,
        token_file: Path,
        environment: Mapping[str, str],
        pools: Mapping[str, PoolSettings],
        cluster_id: Callable[[], str],
        *,
        umask: int = -1,
        program: Sequence[str] = PROGRAM,
        client: SlurmClient | None = None,
        on_change: Callable[[], None] = lambda: None,
        look_seconds: float = BUSY_SECONDS,
        now: Callable[[], datetime] = SystemClock().now,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Creates the provider.

        Parameters:
            environment: that of the master.
            cluster_id: returns the cluster's id, once the master runs.
            umask: that of the tasks; -1 for the master's.
            program: the command of ``det-agent``.
            on_change: called when an observation has changed.
            look_seconds: time between two looks at the queue while there are pilots.
        """
        self._address = address
        self._token_file = token_file
        self._environment = dict(environment)
        self._pools = pools
        self._cluster_id = cluster_id
        self._umask = umask
        self._program = program
        self._client = client or SlurmClient(environment)
        self._monotonic = monotonic
        self.on_change = on_change
        self.looks = Looks(
            self._client,
            self._prefix,
            self._on_look,
            self._has_pilots,
            busy_seconds=look_seconds,
            now=now,
            monotonic=monotonic,
        )
        self._known: dict[str, Instance] | None = None
        """The instances of the last observation; None before the first."""
        self._launching: dict[str, float | None] = {}
        """Pilots that the observer does not know yet, with the time at which their submission ended."""
        self._observations: dict[str, Observation] = {}
        self._released: set[str] = set()
        self._absent: dict[str, int] = {}
        self._newest = Look()
        self._asking_partitions = asyncio.Lock()
        self._partitions: tuple[float, list[partitions.Partition]] | None = None
        self._checking: asyncio.Task[None] | None = None

    async def want(self, instance: Instance) -> None:
        name = instance.agent_id
        self._launching[name] = None
        try:
            await self._submit(instance)
        except (SlurmError, DeterminedError, OSError) as error:
            may_exist = isinstance(error, NoAnswer)
            if not may_exist:
                self._launching.pop(name, None)
                self._released.add(name)
            raise LaunchFailed(str(error), may_exist=may_exist) from error
        finally:
            if name in self._launching:
                self._launching[name] = self._monotonic()

    async def release(self, instance: Instance) -> None:
        try:
            look = await self.looks.fresh()
            self._released.add(instance.agent_id)
            job = look.jobs.get(self._comment(instance.agent_id))
            if job is not None and job.is_live:
                await self._client.cancel(job.id, job.comment)
        except SlurmError as error:
            raise ReleaseFailed(str(error)) from error
        self._launching.pop(instance.agent_id, None)
        if not is_gone(self._observations.get(instance.agent_id)):
            await asyncio.to_thread(self._files(instance.settings).remove, instance.agent_id)

    async def observe(self, instances: Sequence[Instance]) -> Mapping[str, Observation]:
        is_first = self._known is None
        self._known = {each.agent_id: each for each in instances}
        self._forget()
        slurm = [name for name, pool in self._pools.items() if pool.provider and pool.provider.type == "slurm"]
        if instances or slurm:
            self.looks.begin()
        if is_first and slurm:
            self._checking = asyncio.create_task(self._check_pools(slurm), name="checks the pools of Slurm")
        for name in self._known.keys() - self._observations.keys():
            if (job := self._newest.jobs.get(self._comment(name))) is not None:
                await self._see(name, job, self._newest)
        return dict(self._observations)

    async def close(self) -> None:
        """Stops looking. The pilots stay."""
        await self.looks.close()

    def _has_pilots(self) -> bool:
        return bool(self._launching or (self._known or {}).keys() - self._released)

    def _forget(self) -> None:
        """Forgets the pilots that have left the observer's list."""
        known = self._known or {}
        self._launching = {name: at for name, at in self._launching.items() if at is None or name not in known}
        self._observations = {name: seen for name, seen in self._observations.items() if name in known}
        self._absent = {name: count for name, count in self._absent.items() if name in known}
        self._released &= known.keys()

    async def _submit(self, instance: Instance) -> None:
        settings, name = instance.settings, instance.agent_id
        self._require_reachable(settings)
        site, options = await self._checked(settings)
        script = await asyncio.to_thread(self._write, instance, site, options)
        output = str(script.parent / OUTPUT).replace("%", "%%")
        words = slurm_options.of_job(options, slots=settings.slots_per_agent, nodes=settings.nodes)
        words += [] if "chdir" in options else [f"--chdir={script.parent}"]
        comment = self._comment(name)
        words += [f"--comment={comment}", f"--job-name={comment}", f"--output={output}", "--open-mode=append"]
        for _ in range(MAX_SUBMISSIONS):
            job_id = await self._client.submit(words, script)
            try:
                look = await self.looks.fresh()
            except SlurmError:
                return  # the next looks say whether it exists
            if comment in look.jobs:
                return
            logger.warning("Slurm has lost its job %s, agent %s; it is submitted again", job_id, name)
        raise SlurmError(f"Slurm has lost {MAX_SUBMISSIONS} jobs right after their submission")

    def _require_reachable(self, settings: ProviderSettings) -> None:
        if not settings.master_url and self._address.is_loopback:
            raise DeterminedError(
                "the master listens on this machine alone, so jobs on other nodes cannot reach it; start it with "
                "--host and an address of a network that the nodes share, or write master_url into the provider"
            )

    async def _checked(self, settings: ProviderSettings) -> tuple[SiteProfile, dict[str, str | None]]:
        """Returns SITE.yaml and the options of a job that Slurm would start. Raises SlurmError and ConfigError."""
        site = await asyncio.to_thread(site_profile.find, settings.site, Path(), {}) if settings.site else SiteProfile()
        for name, value in site.sbatch.items():
            if problem := slurm_options.problem(name, True if value is None else value):
                raise site.option_error(name, problem)
        options = slurm_options.merged(site.sbatch, slurm_options.texts(settings.sbatch))
        problem = partitions.problem(
            await self._known_partitions(), options.get("partition"), options.get("time"), settings.nodes
        )
        if problem:
            # Its options are those of a command line.
            raise SlurmError(problem.replace("--", "the pool's "))
        return site, options

    async def _known_partitions(self) -> list[partitions.Partition]:
        async with self._asking_partitions:
            now = self._monotonic()
            if self._partitions is None or now - self._partitions[0] > PARTITIONS_SECONDS:
                try:
                    text = await self._client.partitions()
                except NoAnswer as error:
                    raise SlurmError(str(error)) from error  # nothing was submitted
                self._partitions = (now, partitions.parse(text))
            return self._partitions[1]

    def _write(self, instance: Instance, site: SiteProfile, options: Mapping[str, str | None]) -> Path:
        """Writes the files of a pilot and returns its script. Blocking."""
        settings, files = instance.settings, self._files(instance.settings)
        token, certificate = files.share(self._token_file, self._address.certificate)
        source = str(self._address.certificate)
        pilot = Pilot(
            agent_id=instance.agent_id,
            pool=instance.pool,
            program=self._program,
            master=settings.master_url or self._address.reachable,
            token_file=token,
            folder=files.of(instance.agent_id),
            without_master_seconds=WITHOUT_MASTER_SECONDS,
            certificate_options=[
                str(certificate) if word == source else word for word in self._address.certificate_options
            ],
            slots=None if slurm_options.has_gpus(options) else settings.slots_per_agent,
            nodes=settings.nodes,
            umask=self._umask,
            node_scratch=site.node_scratch,
            setup=site.setup,
            environment=site.environment,
        )
        return files.write(instance.agent_id, pilot_script.text(pilot))

    def _files(self, settings: ProviderSettings) -> PilotFiles:
        root = Path(settings.folder).expanduser() if settings.folder else default_folder(self._environment)
        return PilotFiles(root, self._cluster_id())

    def _prefix(self) -> str:
        return f"detent:{self._cluster_id()}:"

    def _comment(self, agent_id: str) -> str:
        return self._prefix() + agent_id

    async def _check_pools(self, names: Sequence[str]) -> None:
        """Says in the master's log what is wrong with the options of a pool, before the first pilot is needed; removes
        the files of pilots that ended long ago."""
        for name in names:
            provider = self._pools[name].provider
            if provider is None:
                continue
            try:
                await asyncio.to_thread(self._files(provider).remove_old, set(self._known or ()))
                self._require_reachable(provider)
                await self._checked(provider)
            except (SlurmError, DeterminedError, OSError) as error:
                logger.warning("pool %s cannot start agents: %s", name, error)

    async def _on_look(self, look: Look) -> None:
        self._newest = look
        if self._known is None:
            return
        before = dict(self._observations)
        for name in list(self._known):
            if name not in self._known:
                continue  # it has ended while this waited for the files of another one
            job = look.jobs.get(self._comment(name))
            if job is None:
                self._note_absent(name, look)
            else:
                await self._see(name, job, look)
        await self._cancel_orphans(look)
        if self._observations != before:
            self.on_change()

    async def _see(self, name: str, job: queue.SlurmJob, look: Look) -> None:
        self._absent.pop(name, None)
        before, line = self._observations.get(name), ""
        if job.state in ("COMPLETED", "FAILED"):
            if is_gone(before):
                return
            instance = (self._known or {})[name]
            line = await asyncio.to_thread(self._files(instance.settings).last_line, name)
        seen = queue.observation(job, look.at, last_line=line)
        if job.state == "CANCELLED" and name in self._released:
            seen = replace(seen, reason=f"{job.name} was cancelled")
        self._observations[name] = _steady(before, seen)

    def _note_absent(self, name: str, look: Look) -> None:
        submitted = self._launching.get(name, 0.0)
        if submitted is None or look.began < submitted:
            return
        count = self._absent[name] = self._absent.get(name, 0) + 1
        last = self._observations.get(name)
        if count >= ABSENT_LOOKS and not is_gone(last):
            text = f"{last.origin} is not in Slurm's queue any more" if last else "Slurm has no job of this agent"
            self._observations[name] = Observation(ObservedState.GONE, text, origin=last.origin if last else "")

    async def _cancel_orphans(self, look: Look) -> None:
        """Cancels pilots that the master does not know: a backup was restored, or their submission seemed to fail."""
        prefix = self._prefix()
        for comment, job in look.jobs.items():
            name = comment.removeprefix(prefix)
            needed = ((self._known or {}).keys() | self._launching.keys()) - self._released
            if job.is_live and name not in needed:
                logger.warning("%s is a pilot that nobody needs; it is cancelled", job.name)
                try:
                    await self._client.cancel(job.id, comment)
                except SlurmError as error:
                    logger.warning("%s was not cancelled: %s", job.name, error)


def is_gone(seen: Observation | None) -> bool:
    return seen is not None and seen.state is ObservedState.GONE


def _steady(before: Observation | None, now: Observation) -> Observation:
    """Returns the new observation with the time of the last one, if they are the same but for rounding."""
    if before and before.leaves_at and now.leaves_at and abs(before.leaves_at - now.leaves_at) < JITTER:
        return replace(now, leaves_at=before.leaves_at)
    return now
