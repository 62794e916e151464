"""Projects of RLHF experiments: their modules have the same names, so each test imports them anew."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from determined_workflows.rlhf import example
from determined_workflows.rlhf.task import config

PACKAGES = ("api", "apps", "base", "experiments", "impl")


@pytest.fixture
def clean_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forgets the modules, registrations and import folders of a project after the test."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    registered = dict(config.ALL_EXPERIMENT_CLASSES)
    yield
    for name in [each for each in sys.modules if each.partition(".")[0] in PACKAGES]:
        del sys.modules[name]
    config.ALL_EXPERIMENT_CLASSES.clear()
    config.ALL_EXPERIMENT_CLASSES.update(registered)


@pytest.fixture
def project_folder(tmp_path: Path, clean_modules: None) -> Path:
    """Returns the folder of the project that ``det rlhf init`` writes."""
    example.init(tmp_path / "project")
    return tmp_path / "project"
