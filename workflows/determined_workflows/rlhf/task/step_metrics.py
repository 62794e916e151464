"""The metrics of one step: logged values, seconds of each call and worker, tokens a second, and version lag."""

from collections.abc import Mapping, Sequence

from determined_workflows.rlhf.task.model_calls import CallRecord


def of_step(
    logged: Mapping[str, object], records: Sequence[CallRecord], *, epoch: int, seconds: float
) -> dict[str, object]:
    """Returns the metrics of one step by name.

    Names are ``FUNCTION/KEY`` for logged values, ``seconds/WORKER/CALL``, ``tokens_per_second/MODEL/CALL``,
    ``version/MODEL`` (train steps of the weights that the step used last), ``version_lag/MODEL`` (how many train steps
    they were behind), ``seconds/step``, ``tokens_per_second`` and ``epoch``.

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
