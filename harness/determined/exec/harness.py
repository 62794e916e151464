"""``python3 -m determined.exec.harness module:Class``: trains a trial class as the experiment configuration says."""

import contextlib
import gc
import importlib
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from determined import LOG_FORMAT
from determined.errors import DeterminedError, FrameworkMissing, StorageError
from determined.exec import trial_class
from determined_launch import environment

logger = logging.getLogger(__name__)

_FRAMEWORKS = ("torch", "deepspeed", "horovod", "keras")


class WrongKind(DeterminedError):
    """Raised for a class that cannot be trained here."""


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 0 after complete training or preemption; an exception of the user's code propagates."""
    words = list(sys.argv[1:] if argv is None else argv)
    environ = environment.current()
    test_mode = "--test-mode" in words or bool(environ.get(environment.TEST_MODE))
    words = [word for word in words if word != "--test-mode"]
    if len(words) != 1 or ":" not in words[0]:
        print("usage: python3 -m determined.exec.harness [--test-mode] (module:Class | file.py:Class)", file=sys.stderr)
        return 2
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT)
    try:
        with uncollected():
            trial = trial_class.find(words[0])
            check_kind(trial, words[0], environ)
    except DeterminedError as error:
        logger.error("%s", error)
        return 1
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _FRAMEWORKS:
            raise
        logger.error("%s: %s", words[0], FrameworkMissing(missing))
        return 1
    return _train(trial, words[0], test_mode=test_mode)


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Suspends garbage collection during imports and freezes their objects.

    Nothing of torch is garbage. Collecting costs a fifth of its import, and then time at each full collection in
    training.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def check_kind(loaded: object, spec: str, environ: Mapping[str, str]) -> None:
    """Raises WrongKind if the launch layer cannot run the class."""
    if not isinstance(loaded, type):
        raise WrongKind(f"{spec} is a {type(loaded).__name__}, not a trial class")
    layer = _layer(environ)
    if is_keras(loaded):
        if layer == "the deepspeed layer":
            raise WrongKind(f"{spec} is a TFKerasTrial, which {layer} cannot run; use {spec} itself as the entrypoint")
        return
    from determined.pytorch import PyTorchTrial
    from determined.pytorch.deepspeed import DeepSpeedTrial

    if not issubclass(loaded, (PyTorchTrial, DeepSpeedTrial)):
        raise WrongKind(f"{spec} is not a subclass of PyTorchTrial, DeepSpeedTrial or TFKerasTrial")
    wants = "deepspeed" if issubclass(loaded, DeepSpeedTrial) else "torch_distributed"
    if (wants == "deepspeed") != (layer == "the deepspeed layer"):
        raise WrongKind(f"{spec} is a {loaded.kind}, which {layer} cannot run; use determined.launch.{wants}")


def is_keras(found: type) -> bool:
    """Returns True for a TFKerasTrial; its module has imported determined.keras, which other tasks do not have."""
    keras = sys.modules.get("determined.keras")
    return keras is not None and issubclass(found, keras.TFKerasTrial)


def _layer(environ: Mapping[str, str]) -> str:
    return next(
        (
            f"the {name} layer"
            for variable, name in (
                (environment.USE_DEEPSPEED, "deepspeed"),
                (environment.USE_HOROVOD, "horovod"),
                (environment.USE_TORCH_DISTRIBUTED, "torch_distributed"),
            )
            if environ.get(variable)
        ),
        "a process without a launch layer",
    )


def _train(found: Any, spec: str, *, test_mode: bool) -> int:  # noqa: ANN401  # a class of the user
    run: Callable[..., None] = importlib.import_module(
        "determined.keras._training" if is_keras(found) else "determined.pytorch._legacy"
    ).run
    try:
        run(found, spec, test_mode=test_mode)
    except (StorageError, FrameworkMissing) as error:
        logger.error("%s", error)
        return 1
    except DeterminedError as error:
        # our own error explains itself, but its place in the user's code helps
        logger.error("%s", error, exc_info=error.__traceback__ is not None)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
