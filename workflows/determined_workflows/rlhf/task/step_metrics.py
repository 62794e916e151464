"""The metrics of one step: logged values, seconds of each call and worker, tokens a second, and version lag."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from determined_workflows.rlhf.task.model_calls import CallRecord


def of_step(
    logged: Mapping[str, object], records: Sequence[CallRecord], *, epoch: int, seconds: float
) -> dict[str, object]:
    """Returns the metrics of one step by name.

    Names are ``FUNCTION/KEY`` for logged values, ``seconds/WORKER/CALL``, ``tokens_per_second/MODEL/CALL``,
    ``version/MODEL`` (train steps of the weights that the step used last), ``version_lag/MODEL`` (how many train steps
    behind the newest they were), ``seconds/step``, ``tokens_per_second`` and ``epoch``.

    Args:
        logged: what the functions of the dataflow logged.
        records: the calls of this step.
        epoch: number of the epoch.
        seconds: duration of the step.
    """
    metrics: dict[str, object] = {"epoch": epoch, "seconds/step": seconds, **logged}
    spent: dict[str, float] = {}
    slowest: dict[tuple[str, str], dict[str, float]] = {}
    tokens: dict[tuple[str, str], int] = {}
    for record in records:
        name = f"seconds/{record.worker}/{record.handle}"
        spent[name] = spent.get(name, 0.0) + record.seconds
        call = (record.model, record.handle)
        workers = slowest.setdefault(call, {})
        workers[record.worker] = workers.get(record.worker, 0.0) + record.seconds
        tokens[call] = tokens.get(call, 0) + record.tokens
        metrics[f"version/{record.model}"] = record.version
        lag = f"version_lag/{record.model}"
        metrics[lag] = max(record.lag, int(str(metrics.get(lag, 0))))
    for (model, handle), count in tokens.items():
        time = max(slowest[model, handle].values())
        if count and time > 0:
            metrics[f"tokens_per_second/{model}/{handle}"] = count / time
    trained = sum(count for (_, handle), count in tokens.items() if handle == "train_step")
    if trained and seconds > 0:
        metrics["tokens_per_second"] = trained / seconds
    return {**metrics, **spent}


def line(step: int, total: int, logged: Mapping[str, object], metrics: Mapping[str, object]) -> str:
    """Returns what people read of a step: what the functions logged, and its duration.

    >>> line(3, 40, {"score/reward": 0.25}, {"seconds/step": 0.5})
    'step 3 of 40 in 0.5 s: score/reward 0.25'
    """
    values = ", ".join(f"{name} {_rounded(value)}" for name, value in logged.items())
    return f"step {step} of {total} in {_rounded(metrics['seconds/step'])} s" + (f": {values}" if values else "")


def _rounded(value: object) -> object:
    value = _plain(value)
    return f"{value:.4g}" if isinstance(value, float) else value


class MetricsFile:
    """The metrics of a run off the cluster: one line of JSON for each report in ``metrics.jsonl``.

    After a worker's death steps are repeated, and so are their lines: the last line of a step counts.

    Args:
        folder: folder of the run; None writes nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self._file = None if folder is None else folder / "metrics.jsonl"

    def add(self, group: str, step: int, metrics: Mapping[str, object]) -> None:
        """Appends one report."""
        if self._file is None:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        line = {"group": group, "step": step, "metrics": {name: _plain(value) for name, value in metrics.items()}}
        with self._file.open("a", encoding="utf-8") as opened:
            opened.write(json.dumps(line, default=_plain) + "\n")


def _plain(value: Any) -> object:  # noqa: ANN401  # whatever a function logs
    """Returns a tensor or array as a number or as nested lists; a text for what has no JSON form."""
    of_array = getattr(value, "tolist", None)
    if of_array is not None:
        return of_array()
    return value if value is None or isinstance(value, (bool, int, float, str, list, dict)) else str(value)
