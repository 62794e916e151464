"""The distribution ``detent-runner``: built, installed with only PyYAML, and used as in runner's README."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.support.packages import make_environment, site_packages
from tests.workflows.runner import document_example

PROJECT = Path(__file__).parents[3] / "workflows" / "runner"
NOTEBOOK = """\
import sys
from {name}.examine import Examiner, latest_log


def add_bleu(output_dir, experiment, caches):
    latest_test_log = latest_log("test", output_dir)
    experiment.metric["test_bleu"] = float(latest_test_log.read_text().split()[-1])


examiner = Examiner()
examiner.add(add_bleu)
examiner.exam(output="output", regex=".*batch.*")
examiner.table()
loaded = {{name.partition(".")[0] for name in sys.modules}}
assert not loaded & {{"determined", "determined_cli", "determined_master", "pandas"}}
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns an environment with the wheel and PyYAML."""
    folder = tmp_path_factory.mktemp("distribution")
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(folder), str(PROJECT)]
    subprocess.run(build, check=True, capture_output=True, timeout=120)
    (wheel,) = folder.glob("detent_runner-*.whl")
    created = make_environment(folder / "environment")
    package = Path(yaml.__file__).parent
    for path in (package, package.parent / "_yaml"):
        (site_packages(created) / path.name).symlink_to(path)
    install = [str(created / "bin" / "python"), "-m", "pip", "install", "-q", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(install, check=True, capture_output=True, timeout=120)
    return created


def test_the_example_of_the_readme_runs_with_the_distribution(environment: Path, folder: Path) -> None:
    variables = document_example.write(folder)
    run = str(environment / "bin" / "run")

    def output(*argv: str) -> tuple[int, str]:
        done = subprocess.run(argv, cwd=folder, env=variables, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    code, lines = output(run)
    assert code == 1, lines
    assert lines.startswith("Orphan params: set()\nTasks: 4, commands to run: 12\nSTART   gpu: 0, train: 1/ 4, output/")
    assert (folder / "output" / "Norm_batch-Moment_0.1" / "averaged_model.pt").exists()
    for name in ("runner", "mlrunner"):
        (folder / "notebook.py").write_text(NOTEBOOK.format(name=name))
        code, lines = output(str(environment / "bin" / "python"), "notebook.py")
        assert (code, lines) == (0, "moment\ttest_bleu\n0.05\t27.5\n0.1\t27.5\n")
    assert output(run, "check")[1].startswith("Orphan params: set()\nTasks: 4, commands to run: 12\noutput/Norm_new-")
    assert output(run, "logs")[1].startswith("Orphan params: set()\nTasks: 4, commands to run: 12\nSTART ")
    assert "==> output/Norm_batch-Moment_0.1/log.train." in output(run, "logs", "Norm_batch-Moment_0.1")[1]
    assert output(run, "status")[1].endswith("Tasks: 4 (1 failed, 3 finished)\n")
    code, lines = output(run, "-h")
    assert code == 0
    assert "folder of all tasks (default: output)" in lines


def test_messages_of_the_distribution_name_the_program_run(environment: Path, folder: Path) -> None:
    run = str(environment / "bin" / "run")
    done = subprocess.run([run], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 4
    assert done.stderr == "run: params.yaml does not exist; `run init` writes an example\n"
    done = subprocess.run([run, "init"], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.stderr == "wrote params.yaml; `run` executes it\n"
