"""The project of ``det rlhf init``, whose model waits at a gate of the test."""

from pathlib import Path

from determined_workflows.rlhf import example

GATE = "step"
_OF_EXAMPLE = "\n    def train_step(self, model, data):\n"
_WITH_GATE = """
    def train_step(self, model, data):
        gate = pathlib.Path(os.environ["GATES"], "step")
        if model.version.global_step == 10 and gate.exists():
            gate.with_suffix(".here").touch()
            while gate.exists():
                time.sleep(0.02)
"""


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
