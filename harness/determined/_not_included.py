"""Modules of Determined that are not part of this product, with what to use in their place."""

INSTEAD = {
    "common": (
        "it held the older client's own parts; use determined.core inside a task, and the det command or the HTTP "
        "API (/api/v1) outside of one"
    ),
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
    "tensorboard": (
        "event files are written by context.get_tensorboard_writer() in a trial, or below core_context.train."
        "get_tensorboard_path() in a script"
    ),
    "transformers": (
        "there is no Hugging Face callback; report from a transformers.TrainerCallback by core_context.train."
        "report_training_metrics() and report_validation_metrics(), and save by core_context.checkpoint.store_path()"
    ),
    "util": (
        "it held internal functions of the older product, which the standard library can replace; "
        "import_from_path() and LOG_FORMAT are in determined itself"
    ),
}


def explain(name: str) -> str:
    """Returns the text of the error for ``determined.NAME``."""
    return f"determined.{name} is not part of Detent: {INSTEAD[name]}"


def refuse(module: str) -> None:
    """Raises ImportError for a module of the table, by its full name."""
    raise ImportError(explain(module.removeprefix("determined.")), name=module)
