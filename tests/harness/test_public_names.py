"""The names of ``import determined``, and the errors of imports that Detent does not include."""

import importlib
import subprocess
import sys

import pytest

import determined as det

NOT_INCLUDED = {
    "determined.common.api": "det command",
    "determined.common.experimental": "det command",
    "determined.experimental.core_v2": r"determined\.core\.init\(\)",
    "determined.estimator": "determined.keras.TFKerasTrial",
    "determined.pytorch.experimental": "determined.core.init",
}
PARTS = {
    "from determined.common import get_config_path": "det command",
    "from determined.common.util import get_max_retries_config": "standard library",
    "from determined.tensorboard import S3TensorboardManager": "TorchWriter",
    "from determined.util import write_user_code": "import_from_path",
}


@pytest.mark.parametrize("module", NOT_INCLUDED)
def test_importing_a_module_that_is_not_included_names_the_replacement(module):
    with pytest.raises(ImportError, match=f"is not part of Detent: .*{NOT_INCLUDED[module]}"):
        importlib.import_module(module)


@pytest.mark.parametrize("line", PARTS)
def test_importing_a_name_that_is_not_included_names_the_replacement(line):
    with pytest.raises(ImportError, match=f"is not part of Detent: .*{PARTS[line]}"):
        exec(line, {})


def test_every_form_of_importing_estimator_names_the_replacement():
    for line in (
        "from determined import estimator",
        "import determined.estimator",
        "from determined.estimator import EstimatorTrial",
    ):
        with pytest.raises(ImportError, match="TensorFlow has removed estimators"):
            exec(line, {})
    with pytest.raises(AttributeError, match="write an EstimatorTrial again"):
        _ = det.estimator
    assert not hasattr(det, "nothing")


def test_every_public_name_of_determined_exists():
    for name in det.__all__:
        assert getattr(det, name) is not None
    assert det.LOG_FORMAT % {"levelname": "INFO", "process": 1, "name": "a", "message": "b"} == "INFO: [1] a: b"


def test_importing_determined_does_not_import_torch():
    lines = [
        "import sys, determined",
        "determined.LOG_FORMAT, determined.import_from_path, hasattr(determined, 'estimator')",
        "print('torch' in sys.modules)",
    ]
    ran = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


def test_import_from_path_imports_the_folders_own_modules(tmp_path, monkeypatch):
    for folder, value in (("now", 1), ("then", 2)):
        package = tmp_path / folder / "parts_of_model"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "inner.py").write_text(f"VALUE = {value}")
        (tmp_path / folder / "model_def_of_test.py").write_text("from parts_of_model.inner import VALUE")
    monkeypatch.syspath_prepend(tmp_path / "now")
    now = importlib.import_module("model_def_of_test")
    path = list(sys.path)
    with det.import_from_path(tmp_path / "then"):
        then = importlib.import_module("model_def_of_test")
    assert (now.VALUE, then.VALUE) == (1, 2)
    assert sys.path == path
    assert importlib.import_module("model_def_of_test") is now
    with pytest.raises(NotADirectoryError, match="is not a folder"), det.import_from_path(tmp_path / "nothing"):
        pass
    for name in ("model_def_of_test", "parts_of_model", "parts_of_model.inner"):
        sys.modules.pop(name, None)


def test_import_from_path_restores_path_and_modules_after_an_error(tmp_path):
    (tmp_path / "broken_of_test.py").write_text("1 / 0")
    path = list(sys.path)
    with pytest.raises(ZeroDivisionError), det.import_from_path(tmp_path):
        importlib.import_module("broken_of_test")
    assert sys.path == path
    assert "broken_of_test" not in sys.modules
