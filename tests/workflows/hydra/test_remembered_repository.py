"""Reading the files of an application once for all jobs; the compositions equal those of Hydra alone."""

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hydra import initialize_config_dir
from hydra._internal.config_repository import ConfigRepository
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import ConfigCompositionException
from hydra.types import RunMode
from omegaconf import OmegaConf

LAUNCHER = Path(__file__).parents[3] / "workflows" / "hydra-launcher"
"""The plugin, which tests add to the import path, so that Hydra finds it only there."""
JOBS = (["job=1"], ["job=2", "model=large"], ["model=small", "+extra.key=1"], ["job=1"])


@pytest.fixture
def loader(tmp_path: Path) -> Iterator[Any]:
    """Yields Hydra's loader of a project with a group."""
    for file, text in {
        "conf/config.yaml": "defaults: [{model: small}, _self_]\njob: 0\nname: ${model.size}-${job}\n",
        "conf/model/small.yaml": "size: 1\n",
        "conf/model/large.yaml": "size: 9\n",
        "more/model/huge.yaml": "size: 99\n",
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text, encoding="utf-8")
    with initialize_config_dir(str(tmp_path / "conf"), version_base="1.3"):
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        yield hydra.config_loader


@pytest.fixture
def remember(loader: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Returns a function that makes the loader remember the files that it reads."""
    monkeypatch.syspath_prepend(LAUNCHER)
    module = importlib.import_module("hydra_plugins.hydra_det_launcher.remembered_repository")

    def change() -> None:
        loader.repository = module.RememberedRepository(loader.repository)

    return change


def composed(loader: Any, overrides: list[str]) -> dict[str, Any]:
    master = loader.load_configuration("config", [], run_mode=RunMode.MULTIRUN)
    container = OmegaConf.to_container(loader.load_sweep_config(master, overrides))
    assert isinstance(container, dict)
    return {str(key): value for key, value in container.items()}


def test_jobs_are_composed_as_hydra_alone_composes_them(loader: Any, remember: Callable[[], None]) -> None:
    expected = [composed(loader, overrides) for overrides in JOBS]
    remember()
    assert [composed(loader, overrides) for overrides in JOBS] == expected


def test_each_configuration_file_is_read_once_for_all_jobs(
    loader: Any, remember: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    load = ConfigRepository.load_config

    def counting_load(self: ConfigRepository, config_path: str) -> Any:
        read.append(config_path)
        return load(self, config_path)

    monkeypatch.setattr(ConfigRepository, "load_config", counting_load)
    remember()
    for overrides in JOBS:
        composed(loader, overrides)
    assert {"config", "model/small", "model/large"} <= set(read)
    assert len(read) == len(set(read))


def test_a_job_with_its_own_search_path_uses_it_alone(
    loader: Any, remember: Callable[[], None], tmp_path: Path
) -> None:
    remember()
    with pytest.raises(ConfigCompositionException, match="Could not find 'model/huge'"):
        composed(loader, ["model=huge"])
    more = f"hydra.searchpath=[file://{tmp_path / 'more'}]"
    assert composed(loader, ["model=huge", more])["model"] == {"size": 99}
    with pytest.raises(ConfigCompositionException, match="Could not find 'model/huge'"):
        composed(loader, ["model=huge"])
