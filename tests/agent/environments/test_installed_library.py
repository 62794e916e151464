"""Notes about the official determined library: at the start of a trial, and when it cannot load its checkpoint."""

import pytest

from determined_agent.environments.installed_library import consequence, explain_failure, unreadable_checkpoints

TRACEBACK = [
    '  File "/opt/venv/lib/python3.10/site-packages/determined/pytorch/_pytorch_trial.py", line 982, in _load',
    "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, to do so you have two options",
]


def test_the_note_on_the_official_library_names_its_effect_and_the_setting_that_replaces_it() -> None:
    assert consequence("0.38.1").startswith("pause and resume are as in determined 0.38.1")
    assert "environment.harness: ours" in consequence("0.38.1")


@pytest.mark.parametrize("torch", ["2.6.0", "2.13.0+cpu", "3.0", "2.10.1"])
def test_torch_2_6_and_newer_is_warned_about_unreadable_checkpoints(torch: str) -> None:
    warning = unreadable_checkpoints("0.38.1", torch, {})
    assert f"determined 0.38.1 cannot read the checkpoint of a PyTorchTrial with torch {torch}" in warning
    assert "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1" in warning


@pytest.mark.parametrize("torch", [None, "2.5.1", "1.13.0", "unknown"])
def test_an_older_torch_or_none_gives_no_warning(torch: str | None) -> None:
    assert unreadable_checkpoints("0.38.1", torch, {}) == ""


@pytest.mark.parametrize(("value", "is_warned"), [("1", False), ("True", False), ("yes", False), ("0", True)])
def test_the_variable_that_lets_torch_load_everything_prevents_the_warning(value: str, is_warned: bool) -> None:
    warning = unreadable_checkpoints("0.38.1", "2.13.0", {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": value})
    assert bool(warning) is is_warned


def test_a_failed_checkpoint_load_of_the_official_library_is_explained_with_the_remedy() -> None:
    assert explain_failure(TRACEBACK).startswith("the determined library of this environment cannot read its own")
    assert "environment.harness: ours" in explain_failure(TRACEBACK)


def test_other_failed_loads_are_not_explained() -> None:
    own_load = ['  File "/run/workdir/train.py", line 3, in <module>', TRACEBACK[1]]
    assert explain_failure(own_load) == ""
    assert explain_failure(TRACEBACK[:1]) == ""
