"""Every public name of ``determined`` is listed here, documented with all its parameters, and used by a test or example.

The list is the interface that user code imports: a name that is added or removed changes this file.
"""

import doctest
import importlib
import importlib.util
import inspect
import re
from enum import Enum
from functools import cache
from pathlib import Path

import pytest

import determined

pytestmark = [pytest.mark.torch, pytest.mark.budget(15, "runs the examples, one of which builds an environment")]

PUBLIC = {
    "determined": "LOG_FORMAT ClusterInfo InvalidHP TrialInfo core get_cluster_info import_from_path pytorch",
    "determined.core": (
        "CheckpointContext ClusterInfo Context DistributedContext DownloadMode DummyCheckpointContext"
        " DummyDistributedContext DummyPreemptContext DummyProfilerContext DummySearcherContext DummyTrainContext"
        " EarlyExitReason PreemptContext PreemptMode ProfilerContext SearcherContext SearcherOperation TensorboardMode"
        " TrainContext TrialInfo Unit get_cluster_info init"
    ),
    "determined.common.util": (
        "chunks preserve_random_state safe_load_yaml_with_exceptions sizeof_fmt strtobool wait_for yaml_safe_dump"
        " yaml_safe_load"
    ),
    "determined.tensorboard": "MetricWriter",
    "determined.tensorboard.metric_writers": "MetricWriter",
    "determined.tensorboard.metric_writers.pytorch": "TorchWriter",
    "determined.util": (
        "calculate_batch_sizes filter_duplicates force_create_symlink get_member_func has_param humanize_float"
        " is_numerical_scalar is_overridden json_encode merge_dicts"
    ),
    "determined.keras.callbacks": "Callback EarlyStopping ReduceLROnPlateau TensorBoard",
    "determined.pytorch.lightning": "DeterminedCallback",
    "determined.transformers": "DetCallback",
    "determined.keras": "DeterminedCallback InputData TensorBoard TFKerasTrial TFKerasTrialContext",
    "determined.pytorch": (
        "Batch DataLoader Epoch LRScheduler MetricReducer PyTorchCallback PyTorchTrial PyTorchTrialContext Record"
        " Reducer SimpleMetricReducer TorchData TrainUnit Trainer deepspeed init load_trial_from_checkpoint_path"
        " samplers"
    ),
    "determined.pytorch.deepspeed": (
        "DeepSpeedTrial DeepSpeedTrialContext Trainer get_ds_config_from_hparams init overwrite_deepspeed_config"
    ),
    "determined.pytorch.samplers": (
        "DistributedBatchSampler DistributedSampler RepeatBatchSampler RepeatSampler ReproducibleShuffleBatchSampler"
        " ReproducibleShuffleSampler SkipBatchSampler SkipSampler"
    ),
    "determined.searcher": (
        "Action Create Event LimitsChanged ReplacedMethods SearchContext SearchMethod Shutdown Stop TrialClosed"
        " TrialValidated"
    ),
    "determined.experimental.client": (
        "Checkpoint CheckpointSortBy CheckpointState CheckpointTrainingMetadata Determined DownloadMode Experiment ExperimentPaused ExperimentSortBy ExperimentState LogLevel OrderBy Project Trial TrialMetrics TrialOutputs TrialSortBy TrialState User Workspace create_experiment create_user get_checkpoint get_experiment get_session_username get_trial get_user_by_id get_user_by_name get_workspace iter_trials_metrics list_experiments list_users list_workspaces login logout stream_trials_metrics stream_trials_training_metrics stream_trials_validation_metrics whoami"
    ),
    "determined.launch.autohorovod": "main",
    "determined.launch.deepspeed": "main",
    "determined.launch.horovod": "main",
    "determined.launch.roles": "main",
    "determined.launch.tensorflow": "main",
    "determined.launch.torch_distributed": "main",
    "determined.launch.wrap_rank": "main",
    "determined.storage": "Storage from_config",
    "determined.config": "CheckResult Diagnostic ExperimentConfig check",
    "determined.context": (
        "LIMIT ArchiveEntry ArchiveTooLarge ContextArchive ContextError KnownFolders check_archive entries from_files "
        "pack read small_files "
        "to_tgz unpack"
    ),
    "determined.environments": (
        "BuildFailed Inputs RESULT Requirement Result VENV build read_inputs read_packages read_result requirements"
    ),
    "determined.local": "run_local",
}
WITHOUT_PACKAGE = {
    name
    for name, package in (
        ("determined.pytorch.lightning", "pytorch_lightning"),
        ("determined.transformers", "transformers"),
    )
    if importlib.util.find_spec(package) is None
}
"""Modules whose package is not installed here. The tests of the frameworks' pages install them."""
for _name in WITHOUT_PACKAGE:
    del PUBLIC[_name]
_FOR_US = (["launch"], ["config"], ["context"], ["environments"], ["local"])
FOR_USERS = tuple(name for name in PUBLIC if name.split(".")[1:2] not in _FOR_US)
"""Packages that code inside a task imports. The others serve the command line and the master."""
NOT_INCLUDED = frozenset(
    [
        "determined.common.api",
        "determined.common.experimental",
        "determined.experimental.core_v2",
        "determined.estimator",
        "determined.pytorch.experimental",
    ]
)
"""Modules of Determined whose import raises. test_public_names.py tests their messages."""
MADE_BY_INIT = re.compile(r":func:`[\w.]+\.init` makes it\.")
VAGUE_START = re.compile(r"^(What|Whether|Who|Where|How|When|Like|One way|Kept)\b")
ALIASES = {("determined.pytorch", "TorchData"), ("determined", "LOG_FORMAT"), ("determined.context", "LIMIT")} | {
    *(("determined.searcher", name) for name in ("Action", "Event")),
    *(("determined.keras.callbacks", name) for name in ("EarlyStopping", "ReduceLROnPlateau")),
    *(("determined.environments", name) for name in ("RESULT", "VENV")),
}
"""Values and type aliases, which have no docstring of their own at run time."""


def modules() -> list[str]:
    """Returns all modules except those whose import raises."""
    root = Path(determined.__file__).parent
    files = [file.relative_to(root.parent).with_suffix("") for file in root.rglob("*.py")]
    names = {".".join(file.parts).removesuffix(".__init__") for file in files}
    return sorted(names - NOT_INCLUDED - WITHOUT_PACKAGE)


def listed(packages: tuple[str, ...] = tuple(PUBLIC)) -> list[tuple[str, str]]:
    return [(module, name) for module in packages for name in PUBLIC[module].split()]


def test_the_list_names_exactly_the_public_names():
    names_by_module = {}
    for name in modules():
        module = importlib.import_module(name)
        if hasattr(module, "__all__"):
            names_by_module[name] = sorted(module.__all__)
    assert names_by_module == {module: sorted(names.split()) for module, names in PUBLIC.items()}


def documented(thing: object) -> str:
    text = inspect.getdoc(thing.fget if isinstance(thing, property) else thing)
    assert text, f"{thing} has no docstring"
    summary = text.partition("\n\n")[0]
    assert summary.endswith((".", ":")), f"the first paragraph of {thing} is no sentence: {summary!r}"
    assert not VAGUE_START.match(summary), f"the docstring of {thing} does not say what it is or does: {summary!r}"
    return text


def parameters(function: object) -> list[str]:
    return [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name not in ("self", "cls")
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]


def undocumented(text: str, names: list[str]) -> list[str]:
    return [name for name in names if not re.search(rf"^\s+{name}: \S|``{name}``", text, re.M)]


def check_members(kind: type) -> None:
    for name, member in vars(kind).items():
        inner = member.__func__ if isinstance(member, staticmethod | classmethod) else member
        if name.startswith("_") or not (inspect.isfunction(inner) or isinstance(inner, property)):
            continue
        text = documented(getattr(kind, name))
        if inspect.isfunction(inner):
            missing = undocumented(text, parameters(inner))
            assert not missing, f"{kind.__qualname__}.{name} does not document {missing}"


def own_text(kind: type) -> str:
    """Returns the docstrings of a class, its constructor and its bases, which may document inherited parameters."""
    own = [base for base in kind.__mro__ if base.__module__.startswith("determined")]
    return "\n".join(filter(None, (part for base in own for part in (base.__doc__, base.__init__.__doc__))))


@pytest.mark.parametrize(("module", "name"), listed(FOR_USERS))
def test_a_public_name_has_a_docstring_that_documents_every_parameter(module, name):
    if (module, name) in ALIASES:
        return
    thing = getattr(importlib.import_module(module), name)
    text = documented(thing)
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return
    if inspect.isclass(thing):
        for base in thing.__mro__:
            if base.__module__.startswith("determined"):
                check_members(base)
        made_elsewhere = any(MADE_BY_INIT.search(base.__doc__ or "") for base in thing.__mro__)
        if not made_elsewhere and not issubclass(thing, Enum) and "__init__" in dir(thing):
            public = [parameter for parameter in parameters(thing) if not parameter.startswith("_")]
            missing = undocumented(own_text(thing), public)
            assert not missing, f"{name} does not document {missing}"
    elif inspect.isfunction(thing):
        missing = undocumented(text, parameters(thing))
        assert not missing, f"{name} does not document {missing}"


@cache
def uses() -> str:
    root = Path(__file__).parents[2]
    files = [*root.glob("tests/**/*.py"), *root.glob("examples/**/*.py")]
    return "\n".join(file.read_text(encoding="utf-8") for file in files if file != Path(__file__))


@pytest.mark.parametrize(("module", "name"), listed())
def test_a_public_name_is_used_by_a_test_or_an_example(module, name):
    package = module.rpartition(".")[2]
    if name == "main":
        assert re.search(rf"\bdetermined\.launch\.{package}\b", uses())
        return
    imported = rf"from {re.escape(module)} import [^#]*?\b{name}\b"
    attribute = rf"\b(det|determined|{package})\.{name}\b"
    assert re.search(f"{imported}|{attribute}", uses()), f"no test or example uses {module}.{name}"


@pytest.mark.parametrize("name", modules())
def test_the_examples_in_docstrings_are_correct(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
