"""``det hydra check``: it prints values with their origins, or all errors with their positions, and trains nothing."""

import json
import shutil

import pytest

SCRIPT = "scripts/train.py"


def test_every_value_is_printed_with_its_origin(det, project):
    code, out, err = det("check", SCRIPT, "first=x", "second=${first}")
    lines = dict(line.split("  # ") for line in (" ".join(line.split(" ")) for line in out.splitlines()))
    origins = {key.strip(): origin for key, origin in lines.items()}
    assert code == 0
    assert origins == {
        "task_name = digits": "configs/config.yaml:6",
        "trainer.gradient_accumulation_steps = 1": "schema Trainer",
        "trainer.steps = 3": "schema Trainer",
        "trainer.lr = 0.2": "configs/config.yaml:8",
        "model.width = 8": "configs/model/small.yaml:1",
        "model.type = mlp": "configs/model/small.yaml:2",
        "first = x": "override first=x",
        "second = x": "override second=${first}, ${first}",
        "fail_at = -1": "schema Schema",
        "resume_from_folder = null": "schema Schema",
        "checkpoint_step = -1": "schema Schema",
    }
    assert "begins at" not in out + err
    assert not (project / "outputs").exists()


def test_an_experiment_may_be_named_with_the_suffix_yaml(det):
    _, out, _ = det("check", SCRIPT, "+experiment=large.yaml")
    assert "trainer.steps = 4" in out
    assert "configs/experiment/large.yaml:7" in out
    assert "configs/model/large.yaml:1" in out


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["+experiment=lost"], ["configs/experiment/lost.yaml:3:5: error", 'no choice "huge"', "large, small"]),
        (
            ["model=smal", "trainer.step=1", "trainer.lr=fast"],
            [
                "3 errors",
                'the group "model" has no choice "smal"',
                'did you mean "small"? choices of model: large, small',
                'unknown key "trainer.step"',
                'did you mean "steps"?',
                "trainer.lr: Value 'fast'",
            ],
        ),
        (
            ["+experiment=misspelt"],
            [
                "configs/experiment/misspelt.yaml:3:3: error",
                '"gradient_accumulate_steps" is not in Trainer',
                'did you mean "gradient_accumulation_steps"?',
            ],
        ),
        (
            ["first=${second}", "second=${first}", "task_name=${third}", "trainer.lr=???", "fail_at=???"],
            [
                "interpolation cycle: first -> second -> first",
                "task_name: Interpolation key 'third' not found",
                "trainer.lr: a value is mandatory",
                "fail_at: a value is mandatory",
            ],
        ),
        (["--config-name", "nowhere"], ['there is no configuration "nowhere"', "see config_name"]),
        (["--config-path", "../nowhere"], ["the config folder", "nowhere does not exist"]),
        (["--config-dir", "nowhere"], ["the config folder nowhere does not exist"]),
        (["-m", "trainer.steps=range(1,1000001)"], ["1,000,000 jobs, more than the limit of 2,000"]),
        (["-m", "trainer.steps=range(1,3,0)"], ["the range never ends (override trainer.steps=range(1,3,0))"]),
        (["-m", "trainer.lr=range(0,inf)"], ["the range never ends (override trainer.lr=range(0,inf))"]),
        (["-m", "trainer.steps=range(3,1)"], ["the multirun has no jobs: a sweep has no values"]),
        (["-m", "trainer.lr=1,fast"], ["trainer.lr: Value 'fast'"]),
    ],
)
def test_invalid_overrides_and_configurations_are_reported_with_position_and_advice(det, project, overrides, expected):
    code, out, err = det("check", SCRIPT, *overrides)
    assert code == 4
    assert out == ""
    assert [part for part in expected if part not in err] == []
    assert "Traceback" not in err
    assert {path.name for path in project.iterdir()} == {"configs", "scripts"}


def test_check_masks_secrets(det, monkeypatch):
    monkeypatch.setenv("LOGGER_TOKEN", "hunter22")
    words = ("first=${oc.env:LOGGER_TOKEN}", "second=user:${first}", "+model.api_key=sesame42")
    _, out, err = det("check", SCRIPT, *words)
    assert "hunter22" not in out + err
    assert "sesame42" not in out + err
    assert "second = user:********" in out


def test_check_of_a_multirun_prints_shared_values_once_and_different_ones_by_job(det):
    code, out, err = det("check", SCRIPT, "-m", "model=small,large")
    shared, _, different = out.partition("# job 0: model=small\n")
    assert code == 0
    assert "trainer.lr" in shared
    assert different.splitlines()[0].split() == ["model.width", "=", "8", "#", "configs/model/small.yaml:1"]
    assert "# job 1: model=large" in different
    assert "2 jobs" in err


def test_sweeper_params_of_the_configuration_create_jobs(det):
    _, out, _ = det("check", SCRIPT, "--json", "+experiment=sweep")
    assert [job["overrides"] for job in json.loads(out)["jobs"]] == [
        [f"trainer.lr={lr}", f"model={model}", "+experiment=sweep"] for lr in (1, 2) for model in ("small", "large")
    ]


def test_slurm_options_in_setup_are_warned_about_with_the_right_key(det, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    code, _, err = det("check", SCRIPT, "-m", "hydra/launcher=slurm_launcher")
    assert code == 0
    assert '"gpu-bind=none" is an option of Slurm without effect there; use additional_parameters.gpu_bind: none' in err
    assert "use timeout_min: 2880" in err
    assert "use additional_parameters.exclusive: true" in err
    assert "use submitit_folder" in err
    assert "NCCL_DEBUG" not in err
    assert "this machine has no sbatch" in err


def test_a_script_without_the_decorator_is_refused(det, project):
    (project / "plain.py").write_text("print('hello')\n")
    code, _, err = det("check", "plain.py")
    assert code == 4
    assert "plain.py: error: it has no @hydra.main" in err


def test_a_script_that_catches_every_exception_hides_no_error(det, project):
    script = project / SCRIPT
    script.write_text(
        script.read_text().replace("    main()\n", "    try:\n        main()\n    except Exception:\n        pass\n")
    )
    code, _, err = det("check", SCRIPT, "model=smal")
    assert code == 4
    assert 'the group "model" has no choice "smal"' in err


def test_a_script_that_cannot_be_imported_is_named_with_its_line(det, project):
    (project / "broken.py").write_text("import hydra\nimport nowhere_to_be_found\n")
    _, _, err = det("check", "broken.py")
    assert "broken.py:2: error: ModuleNotFoundError" in err
    assert "activate the environment" in err


def test_a_python_without_hydra_is_named(det, project):
    python = project / "python"
    python.write_text(f'#!/bin/sh\nexec {shutil.which("python3", path="/usr/bin:/bin") or "python3"} -S -E "$@"\n')
    python.chmod(0o755)
    code, _, err = det("check", SCRIPT, "--python", str(python))
    assert code == 4
    assert "Hydra is not installed" in err
