"""The best trial of a search, in words: for ``describe``, ``wait`` and ``create -f``."""

import textwrap
from collections.abc import Mapping
from typing import Any

from determined.client import experiments, trials
from determined.client.numbers import from_wire
from determined.errors import DeterminedError
from determined.metric_directions import smaller_is_better
from determined_cli.experiment.hyperparameters import leaves
from determined_cli.failures import WIDTH, printable
from determined_cli.output.render import snake
from determined_cli.reconnect import Reconnector
from determined_cli.terminal.messages import say


def say_best_trial(reconnector: Reconnector, experiment_id: int) -> None:
    """Prints the best trial on standard error; nothing for a single trial or without a value."""

    def read() -> dict[str, Any]:
        found = snake(experiments.get(reconnector.session, experiment_id))
        best = found.get("best_trial_id")
        return {**found, "trials": [] if best is None else [snake(trials.get(reconnector.session, int(best)))]}

    try:
        text = best_trial_text(reconnector.call(read))
    except DeterminedError as error:  # the exit code is that of the experiment, which has ended
        say(f"cannot show the best trial: {error}")
        return
    if text:
        say(text)


def print_best_trial(experiment: Mapping[str, Any]) -> None:
    """Prints the best trial of a described experiment, below an empty line, if there is one."""
    if text := best_trial_text(experiment):
        print(f"\n{text}")


def print_best_of_goals(experiment: Mapping[str, Any]) -> None:
    """Prints a line for each metric of ``metric_goals`` that a trial of a described experiment has reported."""
    for text in best_of_goals(experiment):
        print(text)


def best_of_goals(experiment: Mapping[str, Any]) -> list[str]:
    """Returns the best value of each validation metric that ``metric_goals`` names, the searcher's metric apart.

    >>> trials = [{"id": id, "summary_metrics": {"validation_metrics": {"top5": {"max": id / 8}}}} for id in (2, 4)]
    >>> best_of_goals({"config": {"metric_goals": {"top5": "maximize", "wer": "minimize"}}, "trials": trials})
    ['best top5: 0.5 (largest), trial 4']
    """
    config = experiment.get("config") or {}
    texts = []
    for metric in config.get("metric_goals") or {}:
        smaller = smaller_is_better(config, metric)
        found = [(_extreme(trial, metric, smaller=bool(smaller)), trial["id"]) for trial in experiment["trials"]]
        values = [(value, trial_id) for value, trial_id in found if isinstance(value, int | float)]
        if values and metric != (config.get("searcher") or {}).get("metric"):
            value, trial_id = (min if smaller else max)(values, key=lambda each: each[0])
            which = "smallest" if smaller else "largest"
            texts.append(printable(f"best {metric}: {_text(value)} ({which}), trial {trial_id}"))
    return texts


def _extreme(trial: Mapping[str, Any], metric: str, *, smaller: bool) -> object:
    validation = (trial.get("summary_metrics") or {}).get("validation_metrics") or {}
    return (validation.get(metric) or {}).get("min" if smaller else "max")


def best_trial_text(experiment: Mapping[str, Any]) -> str:
    """Returns the best trial in lines of at most 80 columns; "" for a single trial or without a value.

    The master has chosen the trial by ``searcher.metric`` and its direction. ``trials`` contains at least that one.

    >>> searcher = {"metric": "loss", "smaller_is_better": True}
    >>> best = {"best_trial_id": 2, "best_trial_searcher_metric": 0.25, "num_trials": 3}
    >>> trial = {"id": 2, "hparams": {"lr": 0.001, "optimizer": {"name": "adam"}}}
    >>> best_trial_text({**best, "config": {"searcher": searcher}, "trials": [trial]})
    'best trial 2: loss 0.25, the smallest of 3 trials; lr 0.001, optimizer.name adam'
    """
    trial = next((row for row in experiment["trials"] if row["id"] == experiment.get("best_trial_id")), None)
    number = int(experiment.get("num_trials") or 0)
    if trial is None or number < 2:
        return ""
    searcher = (experiment.get("config") or {}).get("searcher") or {}
    which = "smallest" if searcher.get("smaller_is_better", True) else "largest"
    value = _text(from_wire(experiment.get("best_trial_searcher_metric")))
    hyperparameters = ", ".join(f"{name} {_text(each)}" for name, each in leaves(trial.get("hparams") or {}))
    text = f"best trial {trial['id']}: {searcher.get('metric')} {value}, the {which} of {number} trials"
    whole = printable(f"{text}; {hyperparameters}" if hyperparameters else text)
    return textwrap.fill(whole, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
