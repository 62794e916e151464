"""The experiments that a page creates pass `det experiment create --local --test-mode`."""

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.compiler import python_path
from tests.support.document_runner import steps, typed, write

pytestmark = pytest.mark.budget(60, "a page creates several experiments, each of which imports torch")

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (
    pytest.param("tutorial/index", marks=pytest.mark.long),  # test_tutorial.py trains it on a cluster
    "how-to/scripts",
    "how-to/several-slots",
    "how-to/roles",
    "how-to/several-machines",
    "how-to/data",
    "how-to/hyperparameter-search",
    "how-to/coming-from-determined",
    *(
        pytest.param(f"how-to/{page}", marks=pytest.mark.long)
        for page in ("containers", "keras", "lightning", "hugging-face", "deepspeed")
    ),
)
CREATE = ("det experiment create ", "det e create ")
REFUSED_ON_PURPOSE = "|| echo"
"""The end of a command whose failure the page shows."""


@pytest.mark.parametrize("page", PAGES)
def test_each_experiment_of_a_page_passes_a_local_test(page: str, tmp_path: Path) -> None:
    """The tutorial's script trains for 100 of its 10,000 steps: test mode does not shorten a loop of the script."""
    search = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environ = {**os.environ, "HOME": str(tmp_path), "PATH": search, "PYTHONPATH": python_path()}
    count = 0
    for step in steps(DOCS / f"{page}.md"):
        if step.name is not None:
            write(replace(step, text=step.text.replace("  steps: 10000\n", "  steps: 100\n")), tmp_path)
            continue
        command = step.text
        if command.startswith(CREATE):
            if REFUSED_ON_PURPOSE in command:
                continue
            words = [word for word in command.split() if word not in ("-f", "--local", "--test-mode")]
            command = f"{shlex.join(words[:3])} --local --test-mode {' '.join(words[3:])}"
            count += 1
            is_create = True
        elif command.startswith(("det ", "det-agent ")):
            continue
        else:
            is_create = False  # it changes files or shows the results of a run on a cluster
        done = typed(command, tmp_path, environ)
        assert done.returncode == 0 or not is_create, f"{command}\n{done.stdout}"
    assert count, "the page creates no experiment"
