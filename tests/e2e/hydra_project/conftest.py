"""Makes the package of ``examples/hydra`` importable, and provides one run of its experiment for all tests."""

import sys
from pathlib import Path

import pytest
from tests.e2e.hydra_project.project import EXAMPLE, EXPERIMENT, script

sys.path.append(str(EXAMPLE))


@pytest.fixture(scope="session")
def plain_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a run of the experiment on plain Python, started outside the example's folder."""
    cwd = tmp_path_factory.mktemp("elsewhere")
    done = script("train_with_hydra.py", EXPERIMENT, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = (cwd / "outputs").glob("*/*")
    return folder
