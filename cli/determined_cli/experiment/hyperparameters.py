"""Hyperparameters of trials in tables and texts: one name and value for each, also of nested ones."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from determined_cli.output.render import Column


def with_hyperparameters(
    columns: Sequence[Column], trials: Sequence[Mapping[str, Any]]
) -> tuple[list[Column], list[Mapping[str, Any]]]:
    """Returns a table with one column for each hyperparameter that varies in place of one with all of them.

    >>> trials = [{"hparams": {"lr": 0.1, "opt": {"name": "sgd"}}}, {"hparams": {"lr": 0.2, "opt": {"name": "sgd"}}}]
    >>> with_hyperparameters([("H-Params", "hparams")], trials)
    ([('lr', 'hparams.lr')], [{'hparams.lr': 0.1}, {'hparams.lr': 0.2}])
    """
    points = [dict(leaves(trial.get("hparams") or {})) for trial in trials]
    names = list(dict.fromkeys(name for point in points for name in point))
    varying = [name for name in names if any(point.get(name) != points[0].get(name) for point in points)]
    if not varying:
        return list(columns), list(trials)
    place = next((index for index, (_, key) in enumerate(columns) if key == "hparams"), len(columns))
    others = [column for column in columns if column[1] != "hparams"]
    shown = [*others[:place], *((name, f"hparams.{name}") for name in varying), *others[place:]]
    rows: list[Mapping[str, Any]] = [
        {key: value for key, value in trial.items() if key != "hparams"}
        | {f"hparams.{name}": point.get(name) for name in varying}
        for trial, point in zip(trials, points, strict=True)
    ]
    return shown, rows


def leaves(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the values of nested hyperparameters with their dotted names.

    >>> list(leaves({"lr": 0.1, "opt": {"name": "sgd"}}))
    [('lr', 0.1), ('opt.name', 'sgd')]
    """
    for name, value in values.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value
