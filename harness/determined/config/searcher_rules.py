"""Rules between the fields of a searcher. Each looks at raw values and is silent if their types are wrong."""

from collections.abc import Iterator, Mapping
from typing import Any

from determined.config import search_plan
from determined.config.diagnostics import Path, render_path
from determined.config.findings import Finding
from determined.config.searcher import AdaptiveAshaSearcher, AsyncHalvingSearcher
from determined.hyperparameter_tree import is_group

Config = Mapping[str, Any]


def check(config: Config) -> Iterator[Finding]:
    """Applies the rules of the chosen search method to a merged configuration."""
    searcher = config.get("searcher")
    if not isinstance(searcher, dict):
        return
    if searcher.get("name") in search_plan.HALVING:
        yield from _training_time(searcher, config)
        yield from _overruled(searcher)
        yield from _brackets(searcher)
    elif searcher.get("name") == "list":
        yield from _listed(searcher.get("trials"), config.get("hyperparameters"))


def _training_time(searcher: dict[str, Any], config: Config) -> Iterator[Finding]:
    name, length = searcher["name"], searcher.get("max_length")
    given = [field for field in ("time_metric", "max_time") if searcher.get(field) is not None]
    if len(given) == 1:
        missing = "max_time" if given == ["time_metric"] else "time_metric"
        hint = 'add "max_time: 1000"' if missing == "max_time" else 'add "time_metric: batches"'
        yield Finding("E311", ("searcher", given[0]), f'"{given[0]}" is given without "{missing}"', hint, "key")
    elif not given and length is None:
        message = f"{name} needs the longest time that a trial may train"
        hint = 'add "time_metric: batches" and "max_time: 1000", or "max_length: {batches: 1000}"'
        yield Finding("E311", ("searcher",), message, hint, "key")
    elif not given:
        yield from _length(length, config)


def _length(length: object, config: Config) -> Iterator[Finding]:
    where: Path = ("searcher", "max_length")
    number = next(iter(length.values()), None) if isinstance(length, dict) else length
    if number == 0 and not isinstance(number, bool):
        yield Finding("E205", where, '"searcher.max_length": must be 1 or more for a search that stops trials early')
    hyperparameters = config.get("hyperparameters")
    has_size = isinstance(hyperparameters, dict) and "global_batch_size" in hyperparameters
    if isinstance(length, dict) and "records" in length and not has_size:
        message = "a length in records needs the hyperparameter global_batch_size"
        yield Finding("E311", where, message, 'add it to "hyperparameters", or give the length in batches')


def _overruled(searcher: dict[str, Any]) -> Iterator[Finding]:
    if searcher.get("stop_once") is False:
        message = '"searcher.stop_once: false" has no effect: a trial that was stopped is not resumed'
        yield Finding("W503", ("searcher", "stop_once"), message, "remove it", "key", "warning")
    if searcher.get("bracket_rungs"):
        for field in ("mode", "max_rungs"):
            default = AdaptiveAshaSearcher.model_fields[field].default  # a configuration that was written out has it
            if searcher.get(field, default) != default:
                message = f'"{field}" is ignored because bracket_rungs is given'
                yield Finding("W502", ("searcher", field), message, None, "key", "warning")


def _brackets(searcher: dict[str, Any]) -> Iterator[Finding]:
    complete = _complete(searcher)
    if complete is None:
        return
    planned = search_plan.brackets(complete)
    trials = complete["max_trials"]
    field = _rungs_field(searcher)
    if len(planned) > trials:
        message = f"the search has {len(planned)} brackets but at most {trials} trials (max_trials)"
        hint = 'raise "max_trials", or name fewer brackets in "bracket_rungs"'
        yield Finding("E312", ("searcher", "max_trials"), message, hint)
    units = planned[0].units
    if len(set(units)) < len(units):
        unit, equal = search_plan.training_time(complete).unit, units.count(units[0])
        message = (
            f"{len(units)} rungs are too many for {units[-1]} {unit}: the first {equal} are all at {units[0]} {unit}"
        )
        yield Finding("W504", ("searcher", field), message, "use fewer rungs", "key", "warning")


def _rungs_field(searcher: dict[str, Any]) -> str:
    if searcher["name"] == "async_halving":
        return "num_rungs"
    return "bracket_rungs" if searcher.get("bracket_rungs") else "max_rungs"


def _complete(searcher: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the searcher with its defaults; None if fields are wrong or missing, which is reported elsewhere."""
    model = AsyncHalvingSearcher if searcher["name"] == "async_halving" else AdaptiveAshaSearcher
    try:
        values = model.model_validate(searcher).to_json()
        time = search_plan.training_time(values)
    except (ValueError, KeyError, AttributeError, TypeError):
        return None
    return values if isinstance(time.unit, str) and time.maximum >= 1 else None


def _listed(trials: object, hyperparameters: object) -> Iterator[Finding]:
    for index, entry in enumerate(trials if isinstance(trials, list) else []):
        if not isinstance(entry, dict):
            continue  # a wrong type is reported elsewhere
        where: Path = ("searcher", "trials", index)
        yield from _values(entry, where)
        if isinstance(hyperparameters, dict):
            for path in _open_ranges(hyperparameters, entry):
                message = f"trial {index + 1} of the list gives no value of {'.'.join(path)}, which is a range"
                yield Finding("E313", where, message, "give its value in each trial, or make it a constant")


def _values(entry: Mapping[str, Any], path: Path) -> Iterator[Finding]:
    for name, value in entry.items():
        where = (*path, name)
        if is_group(value):
            yield from _values(value, where)
        elif isinstance(value, dict) and (value.get("type") != "const" or "val" not in value):
            message = f'"{render_path(where)}" must be a value: each trial of a list is one set of hyperparameters'
            yield Finding("E313", where, message, "use the random, grid or adaptive_asha searcher for ranges")


def _open_ranges(hyperparameters: Mapping[str, Any], entry: object) -> Iterator[tuple[str, ...]]:
    given = entry if isinstance(entry, Mapping) else {}
    for name, part in hyperparameters.items():
        if is_group(part):
            if name not in given or is_group(given[name]):
                yield from ((name, *rest) for rest in _open_ranges(part, given.get(name)))
        elif isinstance(part, dict) and part.get("type") != "const" and name not in given:
            yield (str(name),)
