"""The hyperparameters, configuration and numbers of a trial, which the contexts of all kinds of trial offer."""

from collections.abc import Mapping
from typing import Any

from determined import core


class ConfiguredTrial:
    """Base class of trial contexts.

    Args:
        core_context: the Core API of the trial.
        hparams: hyperparameters by name.
        exp_conf: experiment configuration.
        trial_seed: seed of the trial's random streams.
    """

    def __init__(
        self,
        core_context: core.Context,
        *,
        hparams: Mapping[str, Any],
        exp_conf: Mapping[str, Any],
        trial_seed: int = 0,
    ) -> None:
        self._core = core_context
        self.distributed = core_context.distributed
        self._hparams = dict(hparams)
        self._config = dict(exp_conf)
        self._trial_seed = trial_seed

    def get_hparams(self) -> dict[str, Any]:
        """Returns all hyperparameters by name."""
        return self._hparams

    def get_hparam(self, name: str) -> Any:  # noqa: ANN401  # only the trial's author knows this type
        """Returns one hyperparameter.

        Args:
            name: name of the hyperparameter.

        Raises:
            ValueError: the configuration has no hyperparameter of that name.
        """
        if name not in self._hparams:
            known = ", ".join(sorted(self._hparams)) or "none"
            raise ValueError(f"there is no hyperparameter {name!r}; the hyperparameters are: {known}")
        return self._hparams[name]

    def get_experiment_config(self) -> dict[str, Any]:
        """Returns the experiment configuration."""
        return self._config

    def get_data_config(self) -> dict[str, Any]:
        """Returns the ``data`` section of the experiment configuration."""
        return dict(self._config.get("data") or {})

    def get_experiment_id(self) -> int:
        """Returns the number of the experiment; 0 off the cluster."""
        return self._core.info.trial.experiment_id if self._core.info else 0

    def get_trial_id(self) -> int:
        """Returns the number of the trial; 0 off the cluster."""
        return self._core.info.trial.trial_id if self._core.info else 0

    def get_trial_seed(self) -> int:
        """Returns the seed of the trial's random streams."""
        return self._trial_seed

    def get_core_context(self) -> core.Context:
        """Returns the Core API of this trial."""
        return self._core
