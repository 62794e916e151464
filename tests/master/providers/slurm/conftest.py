"""A provider over recording programs, whose looks are 0.05 s apart."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from tests.support.slurm_programs import FakeSlurm

from determined_master.providers.master_address import MasterAddress
from determined_master.providers.provider import Instance, Observation
from determined_master.providers.slurm.client import SlurmClient
from determined_master.providers.slurm.slurm_provider import SlurmProvider
from determined_master.settings.pool_settings import PoolSettings, ProviderSettings

PROGRAM = ("sh", "-c", "exec sleep 600", "agent")


class Pilots:
    """Providers of one cluster, each as if a master had just started, and their instances."""

    def __init__(self, folder: Path, slurm: FakeSlurm) -> None:
        (folder / "agent-token").write_text("the-join-token")
        self.folder = folder
        self.slurm = slurm
        self.changes = 0
        self.created: list[SlurmProvider] = []

    def settings(self, **values: object) -> ProviderSettings:
        basics = {"type": "slurm", "max_agents": 4, "folder": str(self.folder / "shared"), "master_url": "http://m:1"}
        return ProviderSettings.model_validate(basics | values)

    def instance(self, name: str = "a", **values: object) -> Instance:
        return Instance(name, "p", self.settings(**values))

    def make(
        self, cluster: str = "c", host: str = "127.0.0.1", certificate: Path | None = None, **values: object
    ) -> SlurmProvider:
        pools = values.pop("pools", {"p": PoolSettings(pool_name="p", provider=self.settings())})
        provider = SlurmProvider(
            MasterAddress(host, 1, certificate),
            self.folder / "agent-token",
            self.slurm.environment,
            pools,
            lambda: cluster,
            **{"program": PROGRAM, "on_change": self._changed, "look_seconds": 0.05}
            | {"client": SlurmClient(self.slurm.environment, timeout=5)}
            | values,
        )
        self.created.append(provider)
        return provider

    def _changed(self) -> None:
        self.changes += 1


@pytest.fixture
def slurm(tmp_path: Path) -> FakeSlurm:
    return FakeSlurm(tmp_path / "slurm")


@pytest.fixture
async def pilots(tmp_path: Path, slurm: FakeSlurm) -> AsyncIterator[Pilots]:
    created = Pilots(tmp_path, slurm)
    yield created
    for provider in created.created:
        await provider.close()
    slurm.end_all()


@pytest.fixture
def seen() -> Callable[[SlurmProvider, Instance], object]:
    """Returns a function that returns what a provider sees of one instance."""

    async def look(provider: SlurmProvider, instance: Instance) -> Observation | None:
        return (await provider.observe([instance])).get(instance.agent_id)

    return look
