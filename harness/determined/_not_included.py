"""Modules of Determined that are not part of this product, with what to use in their place."""

INSTEAD = {
    "common.api": "use the det command, determined.experimental.client or the HTTP API (/api/v1)",
    "common.experimental": "use the det command or determined.experimental.client",
    "experimental.core_v2": (
        "detached mode is not supported yet; use determined.core.init(), which outside of a cluster prints "
        "reports and stores checkpoints in a folder"
    ),
    "estimator": (
        "TensorFlow has removed estimators; write an EstimatorTrial again as a determined.keras.TFKerasTrial, or use "
        "determined.keras.DeterminedCallback in a script"
    ),
    "pytorch.experimental": (
        "there is no batch inference; loop over your data under determined.core.init(), with core_context.distributed "
        "to share it among the slots. Switches of a trial are at context.experimental"
    ),
}


def explain(name: str) -> str:
    """Returns the text of the error for ``determined.NAME``."""
    return f"determined.{name} is not part of Detent: {INSTEAD[name]}"


_PARTS = {
    "common": "use determined.core inside a task, and the det command or the HTTP API (/api/v1) outside of one",
    "common.util": "the standard library has replacements for most of it",
    "tensorboard": (
        "event files stay in core_context.train.get_tensorboard_path(); write them with determined.tensorboard."
        "metric_writers.pytorch.TorchWriter"
    ),
    "util": "the standard library has replacements for most of it; import_from_path() is in determined itself",
}
"""Packages of which only a part is included: what to use instead of the rest."""


def without_attribute(package: str, name: str) -> Exception:
    """Returns the error for a name that ``determined.PACKAGE`` does not have: an ImportError, whose text a line ``from
    determined.PACKAGE import NAME`` shows. Names with underscores are those that Python itself looks for."""
    if name.startswith("_"):
        return AttributeError(f"module 'determined.{package}' has no attribute {name!r}")
    return ImportError(f"determined.{package}.{name} is not part of Detent: {_PARTS[package]}", name=name)


def refuse(module: str) -> None:
    """Raises ImportError for a module of the table, by its full name."""
    raise ImportError(explain(module.removeprefix("determined.")), name=module)
