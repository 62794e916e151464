"""The state of a Keras training that checkpoints contain: weights, optimizer, place in the data, random streams."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from determined.keras._backend import keras

WEIGHTS = "model.weights.h5"
POSITION = "keras_position.json"
STREAMS = "keras_streams.pt"


@dataclass
class Position:
    """The place of the training in its data.

    Args:
        epoch: number of the current epoch, from 0.
        batch: number of batches of that epoch that are trained.
        steps: number of batches that are trained over all epochs.
        validated_at: ``steps`` of the newest validation; None before the first.
    """

    epoch: int = 0
    batch: int = 0
    steps: int = 0
    validated_at: int | None = None


@dataclass
class RestoredState:
    """The parts of a checkpoint that training needs after the weights are loaded.

    Args:
        position: the place in the data.
        epoch_start: random streams at the start of the epoch, which select the order of its data.
        now: random streams at the checkpoint.
        values: values of the variables that are not weights: seed generators, then the metrics of the epoch so far.
    """

    position: Position
    epoch_start: Any = None
    now: Any = None
    values: list[Any] | None = None


def resumes_exactly() -> bool:
    """Returns True if the random streams of the backend can be stored: they can with torch."""
    return bool(keras.backend.backend() == "torch")


def capture_streams() -> Any:  # noqa: ANN401  # the form is that of determined.pytorch
    """Returns the random streams of this process; None if the backend's cannot be read."""
    if not resumes_exactly():
        return None
    from determined.pytorch import _rng

    return _rng.capture()


def restore_streams(streams: Any) -> None:  # noqa: ANN401  # the form is that of determined.pytorch
    """Sets the random streams that :func:`capture_streams` returned."""
    if streams is not None:
        from determined.pytorch import _rng

        _rng.restore(streams)


def read_values(model: Any) -> list[Any]:  # noqa: ANN401  # keras has no types
    """Returns the values of the variables that a file of weights does not contain."""
    return [keras.ops.convert_to_numpy(variable) for variable in _beside_weights(model)]


def write_values(model: Any, values: list[Any]) -> None:  # noqa: ANN401  # keras has no types
    """Sets the variables whose values :func:`read_values` returned. Raises ValueError if the model has others now."""
    variables = _beside_weights(model)
    if len(variables) != len(values):
        raise ValueError(
            f"the checkpoint has {len(values)} seeds and metrics, but the model has {len(variables)}: the metrics or "
            "layers of the model have changed since. Give another continue_id to start from the weights alone"
        )
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def save(folder: Path, model: Any, position: Position, continue_id: str, epoch_start: Any) -> None:  # noqa: ANN401
    """Writes the state into ``folder``."""
    model.save_weights(str(folder / WEIGHTS))
    about = {"continue_id": continue_id, "backend": keras.backend.backend(), **asdict(position)}
    (folder / POSITION).write_text(json.dumps(about, indent=1), encoding="utf-8")
    if resumes_exactly():
        import torch

        values = [torch.as_tensor(value) for value in read_values(model)]
        torch.save({"epoch_start": epoch_start, "now": capture_streams(), "values": values}, folder / STREAMS)


def load(folder: Path, model: Any, continue_id: str) -> RestoredState | None:  # noqa: ANN401  # keras has no types
    """Loads the weights and returns the rest; None if the checkpoint belongs to another training.

    Raises:
        ValueError: the weights do not fit the model.
    """
    if model.optimizer is not None and not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    model.load_weights(str(folder / WEIGHTS))
    about = json.loads((folder / POSITION).read_text(encoding="utf-8"))
    if about["continue_id"] != continue_id:
        return None
    restored = RestoredState(Position(**{name: about[name] for name in asdict(Position())}))
    if (folder / STREAMS).exists() and resumes_exactly():
        import torch

        kept = torch.load(folder / STREAMS, weights_only=True)
        restored.epoch_start, restored.now = kept["epoch_start"], kept["now"]
        restored.values = [value.numpy() for value in kept["values"]]
    return restored


def _beside_weights(model: Any) -> list[Any]:  # noqa: ANN401  # keras has no types
    weights = {id(variable) for variable in model.weights}
    seeds = [variable for variable in model.variables if id(variable) not in weights]
    return [*seeds, *model.metrics_variables]
