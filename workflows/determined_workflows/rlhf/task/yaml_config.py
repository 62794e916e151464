"""Configurations as YAML documents with the class of each part as a tag."""

import os


def dump_config_to_yaml(config: object, file: str | os.PathLike[str]) -> None:
    """Writes a configuration (any dataclass of ``config``) to ``file``."""
    raise NotImplementedError


def load_config_from_yaml(file: str | os.PathLike[str]) -> object:
    """Returns the configuration that ``dump_config_to_yaml`` wrote. Only classes of ``config`` are made."""
    raise NotImplementedError
