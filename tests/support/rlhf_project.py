"""Projects of ``det rlhf init``: one whose model waits at a gate of the test, and imports that a test forgets again."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from determined_workflows.rlhf import example
from determined_workflows.rlhf.task import config

GATE = "step"
PACKAGES = ("api", "apps", "base", "experiments", "impl")
_OF_EXAMPLE = "\n    def train_step(self, model, data):\n"
_WITH_GATE = """
    def train_step(self, model, data):
        gate = pathlib.Path(os.environ["GATES"], "step")
        if model.version.global_step == 10 and gate.exists():
            gate.with_suffix(".here").touch()
            while gate.exists():
                time.sleep(0.02)
"""


@contextmanager
def forgotten_modules() -> Iterator[None]:
    """Forgets the modules, registrations and import folders of projects after the block: their modules have the same
    names."""
    path, registered = list(sys.path), dict(config.ALL_EXPERIMENT_CLASSES)
    try:
        yield
    finally:
        sys.path[:] = path
        for name in [each for each in sys.modules if each.partition(".")[0] in PACKAGES]:
            del sys.modules[name]
        config.ALL_EXPERIMENT_CLASSES.clear()
        config.ALL_EXPERIMENT_CLASSES.update(registered)


def gated_project(folder: Path) -> Path:
    """Writes the project. Its model waits at its eleventh step while the gate ``step`` is closed; ``GATES`` names the
    folder of the gates. Its workers ask for what a small machine has."""
    example.init(folder)
    model = folder / "impl" / "model.py"
    text = model.read_text()
    assert _OF_EXAMPLE in text
    text = text.replace(_OF_EXAMPLE, _WITH_GATE)
    model.write_text(text.replace("import torch\n", "import os\nimport pathlib\nimport time\n\nimport torch\n", 1))
    experiment = folder / "experiments" / "line.py"
    experiment.write_text(experiment.read_text().replace("_default()", "_default(cpu=1, mem=200)"))
    return folder
