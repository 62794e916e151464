"""A step of PPO by the workers, each with one thread, against the same four models in one process with two threads."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.figure import Figure, Skipped, paired
from bench.servers import ROOT

PROJECT = ROOT / "examples" / "rlhf"
SCRIPT = ROOT / "bench" / "reference" / "rlhf_one_process.py"
MODELS = ("actor", "critic", "ref", "reward")
SIZE = {"BENCH_WIDTH": "256", "BENCH_LAYERS": "4"}
STEPS, LEFT_OUT = 12, 4
EXPERIMENT = f"""
from api.config import *
from experiments.ppo import PPO

register_experiment(
    "bench-ppo",
    functools.partial(PPO, actor=os.environ["ACTOR_MODEL"], batch_size=64, prompts={64 * STEPS}),
)
"""
MIN_REFERENCE_SECONDS = 0.2
_PACKAGES = ("launch", "harness", "workflows")


def figures(rounds: int = 5) -> list[Figure]:
    try:
        import transformers  # noqa: F401
    except ImportError:
        raise Skipped("transformers is not installed") from None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _copy_project(folder / "project")
        _run([sys.executable, str(SCRIPT), "make", str(folder / "base")], folder, 2)
        ratios, note = paired(lambda: by_workers(folder), lambda: in_one_process(folder), rounds)
    return [Figure("PPO step, six workers / four models in one process", 1.3, ratios, note=f"{note} s")]


def by_workers(folder: Path) -> float:
    """Returns the median of the seconds of a step."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        run = Path(name)
        command = ["python3", "-m", "determined_workflows.rlhf.task.run_worker", "bench-ppo", "bench"]
        roles = [{"name": role, "command": command} for role in ("master_worker", "data_worker")]
        roles += [{"name": model, "slots": 1, "command": command} for model in MODELS]
        (run / "roles.json").write_text(json.dumps({"preload": ["torch", "transformers"], "roles": roles}))
        _run([sys.executable, "-m", "determined.launch.roles", str(run / "roles.json")], folder, 1, run)
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return _median([line["metrics"]["seconds/step"] for line in lines])


def in_one_process(folder: Path) -> float:
    """Returns the same for the functions of the same experiment, which call the models directly."""
    result = folder / "seconds.json"
    _run([sys.executable, str(SCRIPT), "run", str(result)], folder, 2)
    seconds = _median(json.loads(result.read_text()))
    if seconds < MIN_REFERENCE_SECONDS:
        raise Skipped(f"a step of the reference takes {seconds * 1000:.0f} ms, less than 200 ms: it measures overhead")
    return seconds


def _copy_project(folder: Path) -> None:
    """Copies the example and adds an experiment of the size of this figure."""
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("models", "__pycache__"))
    (folder / "experiments" / "bench.py").write_text(EXPERIMENT)
    with (folder / "experiments" / "__init__.py").open("a") as file:
        file.write("import experiments.bench\n")


def _median(seconds: list[float]) -> float:
    if len(seconds) != STEPS:
        raise RuntimeError(f"{len(seconds)} steps were measured, not {STEPS}")
    return statistics.median(seconds[LEFT_OUT:])


def _run(argv: list[str], folder: Path, threads: int, run: Path | None = None) -> None:
    path = os.pathsep.join([str(ROOT), *(str(ROOT / package) for package in _PACKAGES), str(folder / "project")])
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DET_")}
    environ |= {"PYTHONPATH": path, "OMP_NUM_THREADS": str(threads), "BASE_MODEL": str(folder / "base"), **SIZE}
    environ |= {"ACTOR_MODEL": str(folder / "base")}
    environ |= {"DETENT_RLHF_FOLDER": str(run)} if run else {}
    done = subprocess.run(argv, cwd=folder / "project", env=environ, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{argv[1:3]} failed:\n{(done.stdout + done.stderr)[-2000:]}")


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
