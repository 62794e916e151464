"""The scripts of the Hydra example on plain Python, run as documented."""

import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from tests.e2e.hydra_project.project import EXAMPLE, EXPERIMENT, continued, copied, metrics, result, script, train

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.torch,
    pytest.mark.xdist_group("hydra-example"),
    pytest.mark.budget(60, "trains real models"),
]

EXPERIMENT_FILE = "train_mLSTM7B_slimpajama6b.yaml"


def test_a_run_has_its_folder_with_configuration_metrics_checkpoints_and_result(plain_run: Path) -> None:
    assert plain_run.parent.name == "mLSTM7B_slimpajama6b_example_experiment"
    assert re.fullmatch(r"mLSTM7B_\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", plain_run.name)
    assert sorted(path.name for path in (plain_run / ".hydra").iterdir()) == [
        "config.yaml",
        "hydra.yaml",
        "overrides.yaml",
    ]
    assert (plain_run / EXPERIMENT_FILE).read_text() == (
        EXAMPLE / "configs" / "experiment" / EXPERIMENT_FILE
    ).read_text()
    assert sorted(path.name for path in (plain_run / "checkpoints").iterdir()) == ["step_30", "step_40"]
    logged = metrics(plain_run)
    assert [line["step"] for line in logged if "lr" in line] == list(range(1, 41))
    losses = [line["val_loss"] for line in logged if "val_loss" in line]
    assert len(losses) == 4
    assert losses == sorted(losses, reverse=True)
    assert result(plain_run) == {"final_loss": losses[-1], "steps": 40}


@pytest.mark.long  # det hydra continue, below, starts this command
def test_a_run_continued_by_the_printed_command_ends_with_the_same_loss(plain_run: Path, tmp_path: Path) -> None:
    printed = script("get_resume_command.py", "--resume_from_folder", str(plain_run), "--checkpoint_step=30")
    words = shlex.split(printed.stdout)
    assert words[:3] == ["python", str(EXAMPLE / "scripts" / "train_with_hydra.py"), EXPERIMENT], printed.stderr
    assert "checkpoint_step=30" in words
    assert result(train(tmp_path / "continued", *words[2:])) == result(plain_run)


@pytest.mark.long  # it runs the command that the test above runs
def test_det_hydra_continue_ends_with_the_same_loss(plain_run: Path, tmp_path: Path) -> None:
    assert result(continued(plain_run, 30, tmp_path / "continued")) == result(plain_run)


def test_a_folder_of_another_run_is_refused_unless_slurm_requeued_the_job(plain_run: Path) -> None:
    same_folder = f"hydra.run.dir={plain_run}"
    before = result(plain_run)
    refused = script("train_with_hydra.py", EXPERIMENT, same_folder)
    assert refused.returncode == 1
    assert f"error: {plain_run} holds another run. Name it by resume_from_folder" in refused.stderr
    assert "Traceback" not in refused.stderr
    requeued = script("train_with_hydra.py", EXPERIMENT, same_folder, SLURM_RESTART_COUNT="1")
    assert f"Resumes from {plain_run / 'checkpoints' / 'step_40'}" in requeued.stdout
    assert result(plain_run) == before


def test_two_processes_train_as_one_with_their_batches(plain_run: Path, tmp_path: Path) -> None:
    two = train(tmp_path / "two", EXPERIMENT, "parallel.devices=2", "batch_size_per_device=4")
    first = [next(line["loss"] for line in metrics(run) if "loss" in line) for run in (two, plain_run)]
    assert first[0] == pytest.approx(first[1], rel=1e-3)


def test_an_experiment_is_composed_and_printed_without_a_run(tmp_path: Path) -> None:
    done = script("check_config.py", EXPERIMENT, "trainer.val_every_n_steps=5", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    printed = yaml.safe_load(done.stdout)
    assert (printed["model"]["name"], printed["model"]["vocab_size"]) == ("mLSTM7B", 256)
    assert (printed["optimizer"]["lr"], printed["trainer"]["val_every_n_steps"]) == (5e-3, 5)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["num_epochs=many"], "num_epochs: Value 'many' of type 'str' could not be converted to Integer"),
        (["model.num_heads=42"], "model.num_heads: 42 does not divide model.embedding_dim 32"),
        (
            ["checkpointing=keep_best", "checkpointing.every_n_steps=15"],
            "checkpointing.every_n_steps: 15 is no multiple",
        ),
        pytest.param(
            ["logger=wandb"],
            "logger.wandb: the package wandb is not installed",
            marks=pytest.mark.skipif(find_spec("wandb") is not None, reason="wandb is installed"),
        ),
        (["checkpoint_step=3"], "checkpoint_step: there is no resume_from_folder"),
    ],
)
def test_a_configuration_that_cannot_be_trained_is_refused(overrides: list[str], expected: str) -> None:
    done = script("check_config.py", *overrides)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {expected}"), done.stderr
    assert "Traceback" not in done.stderr


def test_the_error_for_a_misspelt_key_names_the_right_key_and_the_line(tmp_path: Path) -> None:
    text = (EXAMPLE / "configs" / "experiment" / EXPERIMENT_FILE).read_text()
    project = copied(tmp_path / "example")
    misspelt = project / "configs" / "experiment" / "misspelt.yaml"
    misspelt.write_text(text.replace("gradient_accumulation_steps", "gradient_accumulate_steps"))
    line = misspelt.read_text().splitlines().index("  gradient_accumulate_steps: 1") + 1
    done = script("check_config.py", "+experiment=misspelt", project=project)
    expected = "there is no key trainer.gradient_accumulate_steps; did you mean trainer.gradient_accumulation_steps?"
    assert (done.returncode, done.stderr) == (1, f"error: {misspelt}:{line}:3: {expected}\n")


def test_a_missing_device_is_reported_without_a_traceback(tmp_path: Path) -> None:
    done = script("train_with_hydra.py", "device=gpu", "model.num_heads=2", cwd=tmp_path, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 1
    assert "error: device: gpu was asked for, but torch finds none on this machine" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_default_run_from_the_folder_of_the_project_needs_no_determined(tmp_path: Path) -> None:
    """An import of determined would fail here."""
    project = copied(tmp_path / "example")
    (tmp_path / "determined.py").write_text("raise ImportError('nobody asked for it')")
    done = script("train_with_hydra.py", cwd=project, project=Path(), PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    (folder,) = (project / "outputs" / "synthetic").iterdir()
    assert result(folder)["steps"] == 40


@pytest.mark.long
def test_every_other_option_of_a_config_group_has_an_effect(tmp_path: Path) -> None:
    choices = ["optimizer=sgd", "scheduler=linear_warmup", "checkpointing=keep_best", "logger=tensorboard"]
    run = train(tmp_path / "run", *choices, "profiling=torch", "lr_monitor=disabled")
    assert list((run / "tensorboard").iterdir())
    assert (run / "profile" / "trace.json").stat().st_size > 1000
    assert [path.name for path in (run / "checkpoints").iterdir()] == ["step_40"]
    assert '"lr"' not in (run / "metrics.jsonl").read_text()
