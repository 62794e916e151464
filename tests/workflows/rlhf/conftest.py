"""Projects of RLHF experiments: their modules have the same names, so each test imports them anew."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.rlhf_project import forgotten_modules

from determined_workflows.rlhf import example


@pytest.fixture
def clean_modules() -> Iterator[None]:
    with forgotten_modules():
        yield


@pytest.fixture
def project_folder(tmp_path: Path, clean_modules: None) -> Path:
    """Returns the folder of the project that ``det rlhf init`` writes."""
    example.init(tmp_path / "project")
    return tmp_path / "project"
