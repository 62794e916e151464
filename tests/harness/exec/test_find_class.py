"""Finding a trial class, and the errors about a missing class or one that cannot be trained here."""

import sys

import pytest

from determined.exec import harness, trial_class
from determined.exec.trial_class import NoSuchClass

TRIAL = """
import abc
from neighbour import VALUE
class Base: pass
class Mine(Base):
    value = VALUE
    class Inner: pass
"""


@pytest.fixture
def working_folder(tmp_path, monkeypatch):
    """Yields a folder with ``deep/inside/model.py``, which is in no package. Removes the imported modules afterwards."""
    folder = tmp_path / "deep" / "inside"
    folder.mkdir(parents=True)
    (folder / "neighbour.py").write_text("VALUE = 7\n")
    (folder / "model.py").write_text(TRIAL)
    (tmp_path / "plain.py").write_text("class Mine: value = 3\ndef function(): pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if not name.startswith(("torch", "determined", "numpy")):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("spec", "value"),
    [("plain:Mine", 3), ("plain.py:Mine", 3), ("deep/inside/model.py:Mine", 7), ("./deep/inside/model.py:Mine", 7)],
)
def test_every_form_of_a_trial_class_name_finds_the_class(working_folder, spec, value):
    assert trial_class.find(spec).value == value


def test_a_dotted_name_is_found_in_folders_that_are_no_packages(working_folder, monkeypatch):
    monkeypatch.syspath_prepend(working_folder / "deep" / "inside")
    trial = trial_class.find("deep.inside.model:Mine")
    assert trial.__module__ == "deep.inside.model"
    assert trial_class.find("deep.inside.model:Mine.Inner").__qualname__ == "Mine.Inner"


def test_an_installed_package_does_not_hide_a_folder(working_folder):
    """``json`` is a package of the standard library and also a folder here."""
    (working_folder / "json").mkdir()
    (working_folder / "json" / "mine.py").write_text("class Mine: value = 5\n")
    assert trial_class.find("json.mine:Mine").value == 5
    assert trial_class.find("json/mine.py:Mine").value == 5


def test_a_class_of_a_file_is_importable_by_its_module_name(working_folder):
    """Workers of a data loader and readers of a checkpoint import it by this name."""
    trial = trial_class.find("deep/inside/model.py:Mine")
    assert trial.__module__ == "deep.inside.model"
    assert sys.modules[trial.__module__].Mine is trial
    assert trial_class.find("deep/inside/model.py:Mine") is trial


def test_a_trial_class_is_found_by_an_absolute_path(working_folder, monkeypatch):
    (working_folder / "elsewhere").mkdir()
    monkeypatch.chdir(working_folder / "elsewhere")
    assert trial_class.find(f"{working_folder}/deep/inside/model.py:Mine").value == 7


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("nowhere:Mine", "there is no module nowhere in {here}"),
        ("deep.nowhere:Mine", "there is no module deep.nowhere"),
        ("nowhere/x.py:Mine", "there is no file nowhere/x.py in {here}"),
        ("plain:Other", "plain has no class Other; it has Mine"),
        ("plain.py:Mine.Inner", "plain.py has no class Mine.Inner; it has Mine"),
        ("plain.py:", "does not name a trial class"),
    ],
)
def test_a_missing_trial_class_is_reported_with_a_hint(working_folder, spec, text):
    with pytest.raises(NoSuchClass) as failed:
        trial_class.find(spec)
    assert text.format(here=working_folder) in str(failed.value)


def test_a_failed_import_of_the_users_module_is_raised_unchanged(working_folder):
    (working_folder / "broken.py").write_text("import nosuchmodule\n")
    for spec in ("broken:Mine", "broken.py:Mine"):
        with pytest.raises(ModuleNotFoundError, match="nosuchmodule"):
            trial_class.find(spec)


def refusal(caplog, *words):
    """Runs the harness, which must fail without a traceback. Returns its message."""
    caplog.clear()
    assert harness.main(words) == 1
    (record,) = caplog.records
    assert not record.exc_info
    return record.getMessage()


@pytest.mark.parametrize("name", ["torch", "deepspeed", "horovod"])
def test_a_missing_framework_is_named_with_the_extra_to_install(working_folder, caplog, name):
    (working_folder / "needs.py").write_text(f"raise ModuleNotFoundError('no such module', name='{name}.torch')\n")
    message = refusal(caplog, "needs:Mine")
    extra = {"torch": "pytorch"}.get(name, name)
    assert f"{name} is not installed" in message
    assert f"detent-cluster[{extra}]" in message
    assert "environment.image" in message


KINDS = """
from determined import pytorch
class Torch(pytorch.PyTorchTrial): pass
class Engine(pytorch.deepspeed.DeepSpeedTrial): pass
"""


@pytest.mark.torch
def test_a_class_that_cannot_be_trained_here_is_refused_with_the_layer_to_use(working_folder, caplog, monkeypatch):
    (working_folder / "kinds.py").write_text(KINDS)
    for name in ("USE_TORCH_DISTRIBUTED", "USE_HOROVOD", "USE_DEEPSPEED"):
        monkeypatch.delenv(name, raising=False)
    assert "not a subclass of PyTorchTrial, DeepSpeedTrial or TFKerasTrial" in refusal(caplog, "plain:Mine")
    assert "is a function, not a trial class" in refusal(caplog, "plain:function")
    assert (
        refusal(caplog, "kinds:Engine")
        == "kinds:Engine is a DeepSpeedTrial, which a process without a launch layer cannot run; "
        "use determined.launch.deepspeed"
    )
    monkeypatch.setenv("USE_HOROVOD", "1")
    assert "which the horovod layer cannot run; use determined.launch.deepspeed" in refusal(caplog, "kinds:Engine")
    monkeypatch.delenv("USE_HOROVOD")
    monkeypatch.setenv("USE_DEEPSPEED", "1")
    assert (
        refusal(caplog, "kinds:Torch")
        == "kinds:Torch is a PyTorchTrial, which the deepspeed layer cannot run; use determined.launch.torch_distributed"
    )
