"""Projects whose script imports a package of the project or is a module: the check and the task import the same
files."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from determined_workflows.hydra import composition, submission
from determined_workflows.hydra import project as projects
from determined_workflows.hydra.composition import CompositionError
from determined_workflows.hydra.launcher_settings import LauncherSettings
from determined_workflows.hydra.task.run_job import command_of

NET = 'PLACE = __file__\nprint("net from", __file__)\n'
TRAIN = """
import hydra
{imported} import PLACE


@hydra.main(config_path="{configs}", config_name="base", version_base="1.3")
def main(cfg):
    print("width", cfg.width, "from", PLACE, "below", cfg.below)


if __name__ == "__main__":
    main()
"""


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """Returns a project with the package ``nets``, a script beside it, and a module in it."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    folder = tmp_path / "lab"
    files = {
        "nets/__init__.py": "",
        "nets/net.py": NET,
        "nets/train.py": TRAIN.format(imported="from .net", configs="../configs"),
        "nets/__main__.py": TRAIN.format(imported="from .net", configs="../configs"),
        "scripts/train.py": TRAIN.format(imported="from nets.net", configs="../configs"),
        "scripts/configs/base.yaml": "width: 3\nbelow: no\n",
        "configs/base.yaml": "width: 8\nbelow: ${hydra:runtime.output_dir}\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.chdir(folder)
    return folder


def prepared(name, *arguments):
    composed = composition.compose(Path(name), arguments, python=sys.executable)
    return submission.prepare(composed, projects.find(composed), LauncherSettings(), is_checked=False)


def run_elsewhere(prepared_job, folder):
    """Runs the job as its task does, after the project has moved."""
    old = prepared_job.project.folder
    task = folder / "task"
    shutil.copytree(old, task)
    old.rename(old.with_name("gone"))
    os.chdir(task / prepared_job.project.working_folder)
    path = [os.path.normpath(task / import_folder) for import_folder in prepared_job.jobs["import_folders"]]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    command = [
        word
        for word in command_of(json.loads(json.dumps(prepared_job.jobs)), 0, sys.executable)
        if "detent" not in word
    ]
    ended = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_script_imports_a_package_of_its_working_folder(lab, tmp_path):
    out = run_elsewhere(prepared("scripts/train.py"), tmp_path)
    assert f"width 8 from {tmp_path}/task/nets/net.py" in out


def test_a_script_imports_a_package_from_pythonpath_above_its_working_folder(lab, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "..")
    monkeypatch.chdir(lab / "scripts")
    (lab / "scripts" / "train.py").write_text(TRAIN.format(imported="from nets.net", configs="configs"))
    out = run_elsewhere(prepared("train.py"), tmp_path)
    assert f"width 3 from {tmp_path}/task/nets/net.py" in out


def test_a_folder_of_pythonpath_is_sent_although_only_the_job_imports_from_it(lab, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(lab / "source"))
    (lab / "source").mkdir()
    (lab / "nets").rename(lab / "source" / "nets")
    text = TRAIN.format(imported="from nets.net", configs="../configs")
    late = text.replace("from nets.net import PLACE\n", "").replace(
        "    print", "    from nets.net import PLACE\n    print"
    )
    (lab / "scripts" / "train.py").write_text(late)
    out = run_elsewhere(prepared("scripts/train.py"), tmp_path)
    assert f"from {tmp_path}/task/source/nets/net.py" in out


@pytest.mark.parametrize("name", ["nets.train", "nets"])
def test_a_module_runs_as_with_python_m(lab, tmp_path, name):
    out = run_elsewhere(prepared(name, "width=5"), tmp_path)
    assert f"width 5 from {tmp_path}/task/nets/net.py below {tmp_path}/task/outputs" in out


def test_check_and_run_accept_the_same_script_and_module_names(lab, det_here):
    for name in ("scripts/train.py", "nets.train", "nets"):
        code, out, err = det_here("check", name)
        assert (code, out.split("\n")[0].split()[:3]) == (0, ["width", "=", "8"]), err
        assert det_here("run", name, "--dry-run")[0] == 0


def test_the_import_error_names_the_pythonpath_or_the_module_to_use(lab):
    (lab / "src").mkdir()
    (lab / "nets").rename(lab / "src" / "nets")
    with pytest.raises(CompositionError, match=f"help: it is in {lab}/src: start with PYTHONPATH={lab}/src"):
        prepared("scripts/train.py")
    with pytest.raises(CompositionError, match=r"help: name it as after `python -m`.*: nets.train"):
        prepared("src/nets/train.py")


@pytest.mark.parametrize("name", ["nets.trian", "nest.train"])
def test_a_module_that_does_not_exist_is_named(lab, name):
    with pytest.raises(CompositionError, match=f"there is no file and no module {name} to run"):
        prepared(name)


def test_a_package_from_outside_of_the_project_is_warned_about(lab, tmp_path, monkeypatch):
    (tmp_path / "library").mkdir()
    (lab / "nets").rename(tmp_path / "library" / "nets")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "library"))
    submission_ = prepared("scripts/train.py")
    assert submission_.project.folder == lab
    assert [warning for warning in submission_.warnings if f"imported from {tmp_path}/library" in warning]


@pytest.mark.parametrize("is_module", [True, False])
def test_an_interrupted_run_of_a_module_or_with_a_package_beside_it_continues(lab, det_here, is_module):
    (lab / "configs" / "base.yaml").write_text("width: 8\nbelow: no\nresume_from_folder: null\ncheckpoint_step: -1\n")
    name, unused = ("nets.train", "scripts/train.py") if is_module else ("scripts/train.py", "nets/train.py")
    (lab / unused).unlink()
    (lab / "nets" / "__main__.py").unlink()
    start = ["-m", name] if is_module else [name]
    environ = {**os.environ, "PYTHONPATH": str(lab)}
    subprocess.run([sys.executable, *start, "hydra.run.dir=first"], env=environ, capture_output=True, check=True)
    (lab / "first" / "checkpoints" / "step_2").mkdir(parents=True)
    code, out, err = det_here("continue", "first", "--new_overrides", "width=9")
    assert code == 0, out + err
    assert f"width 9 from {lab}/nets/net.py" in out
    assert ("-m nets.train" in out) == is_module
    assert det_here("continue", "first", "--script", name, "--dry-run")[0] == 0
