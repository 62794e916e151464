"""Turns a sweep of Weights & Biases into a search of our own: hyperparameters, searcher, and the trials' command."""

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from determined.errors import ConfigError

SEARCHERS = ("random", "grid", "adaptive_asha", "async_halving", "optuna")
_DEFAULT_COMMAND = ("${env}", "${interpreter}", "${program}", "${args}")
_HALVING = ("adaptive_asha", "async_halving")
NUM_RUNGS = 3
FORMS = {"${args}": "values", "${args_no_boolean_flags}": "flags", "${args_no_hyphens}": "bare"}
"""Placeholders of arguments in the command of a sweep."""


@dataclass(frozen=True)
class TrialCommand:
    """The command of a trial for bash: the arguments of its hyperparameters stand between the two parts.

    ``form`` of the arguments: ``values`` (``--lr=0.1``), ``flags`` (a bare flag for true), ``bare`` (``lr=0.1``), or
    empty for none.
    """

    before: str
    form: str = "values"
    behind: str = ""


@dataclass(frozen=True)
class SweepSearch:
    """A search. ``command``: of the trials, None if the command file has it."""

    hyperparameters: Mapping[str, Any]
    searcher: Mapping[str, Any]
    command: TrialCommand | None
    notes: tuple[str, ...] = ()


def of(content: Mapping[str, Any], searcher: str, count: int | None, file: Path) -> SweepSearch:
    """Returns the search of a sweep's content. ``count``: trials, None if a grid has its own number.

    Raises ConfigError for what our searchers cannot do.
    """
    if searcher not in SEARCHERS:
        raise ConfigError(f'--searcher "{searcher}" is not valid: {", ".join(SEARCHERS)}')
    parameters = content.get("parameters")
    if not isinstance(parameters, dict) or not parameters:
        raise ConfigError(f"{file}: `parameters` is needed: a mapping of names to values")
    hyperparameters = {name: _parameter(file, str(name), each) for name, each in parameters.items()}
    metric = content.get("metric")
    if not isinstance(metric, dict) or not isinstance(metric.get("name"), str):
        raise ConfigError(f"{file}: `metric` needs a name, and a goal: minimize or maximize")
    goal = metric.get("goal", "minimize")
    if goal not in ("minimize", "maximize"):
        raise ConfigError(f'{file}: the goal "{goal}" of the metric is neither minimize nor maximize')
    section: dict[str, Any] = {
        "name": searcher,
        "metric": metric["name"],
        "smaller_is_better": goal == "minimize",
    }
    if searcher == "grid":
        _check_grid(file, hyperparameters)
    else:
        if count is None:
            raise ConfigError(f"--searcher {searcher} needs the number of trials: --count N")
        section["max_trials"] = count
    notes = []
    if searcher in _HALVING:
        section |= _halving(content, file)
        if searcher == "async_halving":
            section["num_rungs"] = NUM_RUNGS
    if searcher in (*_HALVING, "optuna"):
        notes.append(
            f"{searcher} compares trials by their validation metric {metric['name']}: the program reports it by "
            "determined.core (train.report_validation_metrics)"
        )
    if content.get("early_terminate") and searcher not in _HALVING:
        notes.append(f"`early_terminate` of {file.name} has no effect with --searcher {searcher}; adaptive_asha has it")
    return SweepSearch(hyperparameters, section, _command(content, file), tuple(notes))


def _command(content: Mapping[str, Any], file: Path) -> TrialCommand | None:
    program, command = content.get("program"), content.get("command") or _DEFAULT_COMMAND
    if not isinstance(command, (list, tuple)) or not all(isinstance(each, (str, int, float)) for each in command):
        raise ConfigError(f"{file}: `command` is a list of words, such as [python, ${{program}}, ${{args}}]")
    if "${program}" in command and not program:
        return None
    known = {"${env}": "/usr/bin/env", "${interpreter}": "python", "${program}": str(program)}
    parts: list[list[str]] = [[]]
    form = ""
    for word in map(str, command):
        if word in FORMS and not form:
            form = FORMS[word]
            parts.append([])
        elif word.startswith("${") and word not in known:
            raise ConfigError(f"{file}: {word} in `command` is not known here; there are {', '.join((*known, *FORMS))}")
        else:
            parts[-1].append(known.get(word, word))
    behind = shlex.join(parts[1]) if len(parts) > 1 else ""
    return TrialCommand(shlex.join(parts[0]), form, behind)


def _parameter(file: Path, name: str, parameter: object) -> Any:  # noqa: ANN401  # a value of a YAML document
    if not isinstance(parameter, dict):
        raise ConfigError(f"{file}: the parameter {name} is a mapping with value, values, or min and max")
    if "parameters" in parameter:
        raise ConfigError(f"{file}: the parameter {name} has parameters of its own; write them one by one")
    if "value" in parameter:
        return {"type": "const", "val": parameter["value"]}
    if "values" in parameter:
        if "probabilities" in parameter:
            raise ConfigError(f"{file}: `probabilities` of {name} cannot be kept; our searchers draw values equally")
        if not isinstance(parameter["values"], list) or not parameter["values"]:
            raise ConfigError(f"{file}: `values` of {name} is a list with one value or more")
        return {"type": "categorical", "vals": parameter["values"]}
    return _range(file, name, parameter)


def _range(file: Path, name: str, parameter: Mapping[str, Any]) -> dict[str, Any]:
    low, high = parameter.get("min"), parameter.get("max")
    if not isinstance(low, (int, float)) or not isinstance(high, (int, float)):
        raise ConfigError(f"{file}: the parameter {name} needs value, values, or min and max as numbers")
    is_whole = isinstance(low, int) and isinstance(high, int)
    distribution = parameter.get("distribution", "int_uniform" if is_whole else "uniform")
    if distribution == "int_uniform":
        return {"type": "int", "minval": low, "maxval": high}
    if distribution == "uniform":
        return {"type": "double", "minval": low, "maxval": high}
    if distribution == "log_uniform":  # the ends are exponents of e
        return {"type": "log", "base": math.e, "minval": low, "maxval": high}
    if distribution == "log_uniform_values":
        if low <= 0 or high <= 0:
            raise ConfigError(f"{file}: min and max of {name} are above 0 with log_uniform_values")
        return {"type": "log", "base": 10.0, "minval": math.log10(low), "maxval": math.log10(high)}
    raise ConfigError(
        f"{file}: the distribution {distribution} of {name} is not known here; there are uniform, int_uniform, "
        "log_uniform and log_uniform_values"
    )


def _check_grid(file: Path, hyperparameters: Mapping[str, Any]) -> None:
    for name, each in hyperparameters.items():
        if each["type"] in ("double", "log"):
            raise ConfigError(f"{file}: a grid needs `values` of {name}; min and max have no end between them")


def _halving(content: Mapping[str, Any], file: Path) -> dict[str, Any]:
    early = content.get("early_terminate")
    longest = early.get("max_iter") if isinstance(early, dict) else None
    if not isinstance(longest, int):
        raise ConfigError(
            f"{file}: `early_terminate: {{type: hyperband, max_iter: N}}` is needed for this searcher: N is the number "
            "of steps of the longest trial"
        )
    eta = early.get("eta") if isinstance(early, dict) else None
    divisor = {"divisor": eta} if isinstance(eta, (int, float)) else {}
    return {"time_metric": "batches", "max_time": longest, **divisor}
