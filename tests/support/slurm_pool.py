"""A cluster whose pools are partitions of the tests' Slurm: its pilots, and how attempts on them ended."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.support.live_cluster import LiveCluster
from tests.support.live_trials import Experiment
from tests.support.slurm import Slurm
from tests.support.waiting import wait_until


class SlurmPool(LiveCluster):
    """A master with pools of type slurm, by default one of the partition ``compute``."""

    def __init__(
        self,
        folder: Path,
        slurm: Slurm,
        *,
        host: str = "0.0.0.0",
        pools: Sequence[dict[str, Any]] = (),
        **provider: Any,
    ) -> None:
        """``host``: where the master listens. ``pools``: settings of the pools, without what all of them have; ``provider``: that of the only one."""
        settings = [self._pool(folder, each) for each in (pools or [{"pool_name": "default", **provider}])]
        super().__init__(folder, host=host, resource_pools=json.dumps(settings))
        self.slurm = slurm
        self.environment |= slurm.environment

    @staticmethod
    def _pool(folder: Path, values: dict[str, Any]) -> dict[str, Any]:
        provider = {key: value for key, value in values.items() if key not in ("pool_name", "scheduler")}
        common = {"type": "slurm", "max_agents": 2, "idle_timeout": 60.0, "folder": str(folder / "pilots")}
        provider["sbatch"] = {"partition": "compute"} | provider.get("sbatch", {})
        kept = {key: values[key] for key in ("pool_name", "scheduler") if key in values}
        return kept | {"provider": common | provider}

    @property
    def jobs(self) -> dict[str, tuple[str, str]]:
        """Returns state and node of each of our pilots that Slurm knows, by job id."""
        lines = self.slurm.command("squeue", "--noheader", "--states=all", "--format=%i|%T|%N|%k").splitlines()
        rows = [line.split("|") for line in lines]
        return {row[0]: (row[1], row[2]) for row in rows if row[3].startswith(f"detent:{self.cluster_id}:")}

    @property
    def live_jobs(self) -> list[str]:
        return [job for job, (state, _) in self.jobs.items() if state in ("PENDING", "RUNNING", "COMPLETING")]

    def running_job(self, *, within: float = 30.0) -> str:
        """Returns the one job that runs."""
        look = lambda: [job for job, (state, _) in self.jobs.items() if state == "RUNNING"]  # noqa: E731
        (job,) = wait_until(look, within=within, what="a pilot runs")
        return job

    def pool(self, name: str = "default") -> dict[str, Any]:
        """Returns what the cluster page shows of a pool."""
        pools = self.session.get("/detent/cluster/overview")["pools"]
        return next(dict(pool) for pool in pools if pool["name"] == name)

    def attempts(self, experiment: Experiment) -> list[dict[str, Any]]:
        return list(self.session.get(f"/detent/trials/{experiment.trial_id}/attempts")["attempts"])

    def end_of(self, experiment: Experiment, number: int = 0, *, within: float = 20.0) -> str:
        """Waits until an attempt has ended, and returns what it says of its end."""

        def ended() -> str | None:
            found = self.attempts(experiment)
            return found[number]["message"] if len(found) > number and found[number].get("endedAt") else None

        return wait_until(ended, within=within, what=f"attempt {number} has ended")

    def restarts(self, experiment: Experiment) -> int:
        return int(experiment.trials[0]["restarts"])

    def nothing_in_the_queue(self, *, within: float = 30.0) -> None:
        wait_until(lambda: not self.live_jobs, within=within, what="no pilot is left in the queue")


@contextlib.contextmanager
def slurm_pool(folder: Path, slurm: Slurm, **settings: Any) -> Iterator[SlurmPool]:
    """Yields a cluster without pilots; they are cancelled at its end."""
    cluster = SlurmPool(folder, slurm, **settings)
    try:
        cluster.start_master()
        yield cluster
    finally:
        slurm.cancel_all()
        cluster.close()
