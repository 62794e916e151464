"""``searcher: {name: optuna}``: trials that Optuna's sampler draws and its pruner stops. Optuna is imported here only.

Sampler and pruner are made anew for each decision, with a seed of the trial's number: what they decide then follows
from the study alone, which the snapshot holds, so a search that goes on decides as an uninterrupted one.
"""

import importlib.util
import random
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from determined.errors import DeterminedError
from determined.searcher.actions import Action, Stop, TrialClosed, TrialValidated
from determined.searcher.method import SearchContext, SearchMethod
from determined.searcher.optuna_space import distributions, hparams_of

if TYPE_CHECKING:
    import optuna

T = TypeVar("T")
SAMPLERS = {"tpe": "TPESampler", "random": "RandomSampler", "cmaes": "CmaEsSampler", "gp": "GPSampler"}
PRUNERS = {
    "none": "NopPruner",
    "median": "MedianPruner",
    "percentile": "PercentilePruner",
    "successive_halving": "SuccessiveHalvingPruner",
    "hyperband": "HyperbandPruner",
    "threshold": "ThresholdPruner",
}
NEEDS = {"cmaes": ("cmaes",), "gp": ("scipy", "torch")}
"""Packages that a sampler needs besides Optuna."""
STUDY = "search"
"""Hyperband draws a trial's bracket from the name of the study."""


class OptunaMissing(DeterminedError):
    """The tasks' Python environment lacks Optuna, or what its sampler needs."""

    def __init__(self, packages: Iterable[str]) -> None:
        names = " ".join(packages)
        super().__init__(
            f"the Python environment of the experiment's tasks has no {names.replace(' ', ', ')}: install it with "
            f"`pip install {names}` there, or list it in the requirements file of environment.venv"
        )


class InvalidArguments(DeterminedError):
    """Optuna refuses the arguments of a sampler or a pruner."""


class OptunaSearch(SearchMethod):
    """A search by an Optuna study. ``context.arguments`` names ``sampler`` and ``pruner``, each with its arguments."""

    def __init__(self, context: SearchContext) -> None:
        super().__init__(context)
        self._sampler = _named(context.arguments.get("sampler") or "tpe")
        self._pruner = _named(context.arguments.get("pruner") or "none")
        packages = ("optuna", *NEEDS.get(self._sampler[0], ()))
        missing = [name for name in packages if importlib.util.find_spec(name) is None]
        if missing:
            raise OptunaMissing(missing)
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._optuna = optuna
        self._make_sampler(0)
        pruner = self._make_pruner()
        self._unit = context.time_metric or "batches"
        self._pruner_name = type(pruner).__name__
        self._space = distributions(context.hyperparameters)
        self._numbers: dict[str, int] = {}
        """Number in the study by trial that runs and was not pruned."""
        self._last: dict[str, float] = {}
        """Newest metric by such a trial."""
        self._study = self._new_study()

    def initial(self) -> Iterable[Action]:
        return self._fill()

    def on_validation(self, event: TrialValidated) -> Iterable[Action]:
        number = self._numbers.get(event.request_id)
        if number is None:
            return []
        self._last[event.request_id] = event.metric
        self._study.sampler = self._optuna.samplers.RandomSampler(0)  # a Trial asks the sampler for values
        self._study.pruner = self._make_pruner()
        trial = self._optuna.Trial(self._study, number)  # of a new study in memory, the id is the number
        trial.report(event.metric, round(event.time))
        if not trial.should_prune():
            return []
        self._study.tell(number, state=self._optuna.trial.TrialState.PRUNED)
        del self._numbers[event.request_id], self._last[event.request_id]
        reason = (
            f"stopped by {self._pruner_name} after {event.time:g} {self._unit} ({self.context.metric} {event.metric:g})"
        )
        return [Stop(event.request_id, reason)]

    def on_trial_ended(self, event: TrialClosed) -> Iterable[Action]:
        number = self._numbers.pop(event.request_id, None)
        if number is not None:
            value = self._last.pop(event.request_id, None)
            if value is None or event.failed:
                self._study.tell(number, state=self._optuna.trial.TrialState.FAIL)
            else:
                self._study.tell(number, value)
        return self._fill()

    def on_limits_changed(self, event: object) -> Iterable[Action]:
        return self._fill()

    def snapshot(self) -> dict[str, Any]:
        trials = self._study.get_trials(deepcopy=False)
        return {
            "trials": [_stored(trial) for trial in trials],
            "numbers": dict(self._numbers),
            "last": dict(self._last),
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        self._study = self._new_study()
        for stored in snapshot["trials"]:
            self._study.add_trial(self._restored(stored))
        self._numbers = dict(snapshot["numbers"])
        self._last = dict(snapshot["last"])

    def _fill(self) -> list[Action]:
        actions: list[Action] = []
        while self.room:
            number = len(self._study.get_trials(deepcopy=False))
            sampler = self._make_sampler(number)
            self._study.sampler = sampler
            trial = self._study.ask(self._space)
            reason = f"trial {number + 1} of {self.context.max_trials}, drawn by {type(sampler).__name__}"
            action = self.create(hparams_of(self.context.hyperparameters, trial.params), reason)
            self._numbers[action.request_id] = number
            actions.append(action)
        return actions

    def _new_study(self) -> "optuna.Study":
        direction = "minimize" if self.context.smaller_is_better else "maximize"
        return self._optuna.create_study(study_name=STUDY, direction=direction)  # type: ignore[arg-type]

    def _make_sampler(self, number: int) -> "optuna.samplers.BaseSampler":
        name, arguments = self._sampler
        seed = random.Random(f"{self.context.seed}/{number}").getrandbits(32)
        kind: type[optuna.samplers.BaseSampler] = getattr(self._optuna.samplers, SAMPLERS[name])
        return _made(kind, {"seed": seed, **arguments}, "sampler")

    def _make_pruner(self) -> "optuna.pruners.BasePruner":
        name, arguments = self._pruner
        kind: type[optuna.pruners.BasePruner] = getattr(self._optuna.pruners, PRUNERS[name])
        return _made(kind, arguments, "pruner")

    def _restored(self, stored: Mapping[str, Any]) -> "optuna.trial.FrozenTrial":
        return self._optuna.trial.create_trial(
            state=self._optuna.trial.TrialState[stored["state"]],
            value=stored["value"],
            params=stored["params"],
            distributions=self._space,
            system_attrs=stored["attributes"],
            intermediate_values={int(step): value for step, value in stored["reports"]},
        )


def _made(kind: type[T], arguments: Mapping[str, Any], field: str) -> T:
    """Returns a sampler or pruner. Raises InvalidArguments."""
    try:
        return kind(**arguments)
    except (TypeError, ValueError) as error:
        raise InvalidArguments(f"searcher.{field}: {kind.__name__} refuses its arguments: {error}") from error


def _named(value: object) -> tuple[str, dict[str, Any]]:
    if not isinstance(value, Mapping):
        return str(value), {}
    return str(value["name"]), {name: part for name, part in value.items() if name != "name"}


def _stored(trial: "optuna.trial.FrozenTrial") -> dict[str, Any]:
    return {
        "state": trial.state.name,
        "value": trial.value,
        "params": dict(trial.params),
        "attributes": dict(trial.system_attrs),
        "reports": [list(each) for each in trial.intermediate_values.items()],
    }
