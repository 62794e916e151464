"""Configuration files that are read once for all jobs of a multirun; Hydra reads them again for each."""

import copy
from typing import Any

from hydra._internal.config_repository import IConfigRepository
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigResult, ConfigSource


class RememberedRepository(IConfigRepository):
    """Answers as ``delegate`` did the first time. The files of an application do not change between its jobs.

    Hydra copies its repository for each job, and initializes the copy again where the job changes the search path: such
    a copy reads for itself.
    """

    def __init__(self, delegate: IConfigRepository) -> None:
        self._delegate = delegate
        self._configs: dict[str, ConfigResult | None] = {}
        self._exists: dict[tuple[str, str], bool] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> "RememberedRepository":
        return copy.copy(self)

    def initialize_sources(self, config_search_path: ConfigSearchPath) -> None:
        self._delegate = copy.deepcopy(self._delegate)
        self._delegate.initialize_sources(config_search_path)
        self._configs, self._exists = {}, {}

    def load_config(self, config_path: str) -> ConfigResult | None:
        if config_path not in self._configs:
            self._configs[config_path] = self._delegate.load_config(config_path)
        return copy.deepcopy(self._configs[config_path])  # Hydra writes into what it gets

    def group_exists(self, config_path: str) -> bool:
        key = ("group", config_path)
        if key not in self._exists:
            self._exists[key] = self._delegate.group_exists(config_path)
        return self._exists[key]

    def config_exists(self, config_path: str) -> bool:
        key = ("config", config_path)
        if key not in self._exists:
            self._exists[key] = self._delegate.config_exists(config_path)
        return self._exists[key]

    def get_group_options(self, group_name: str, results_filter: ObjectType | None = ObjectType.CONFIG) -> list[str]:
        return self._delegate.get_group_options(group_name, results_filter)

    def get_schema_source(self) -> ConfigSource:
        return self._delegate.get_schema_source()

    def get_sources(self) -> list[ConfigSource]:
        return self._delegate.get_sources()
