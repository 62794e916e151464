"""``TFKerasTrial`` and its context: trial classes that build a Keras model."""

import abc
from collections.abc import Mapping
from typing import Any

from determined._configured_trial import ConfiguredTrial

InputData = Any
"""Data that ``model.fit`` accepts; annotations of older trials use this name."""


class TFKerasTrialContext(ConfiguredTrial):
    """The context of a :class:`TFKerasTrial`: hyperparameters, configuration and options of ``model.fit``.

    Args:
        core_context: the Core API of the trial.
        hparams: hyperparameters by name.
        exp_conf: experiment configuration.
        trial_seed: seed of the trial's random streams.
    """

    _fit_options: Mapping[str, Any] = {}
    _validation_steps: int | None = None

    def get_global_batch_size(self) -> int:
        """Returns the hyperparameter ``global_batch_size``: records per step."""
        return int(self.get_hparam("global_batch_size"))

    def get_per_slot_batch_size(self) -> int:
        """Returns the number of records per step of one slot, which is all of them: Keras trains on one slot."""
        return self.get_global_batch_size()

    def wrap_model(self, model: Any) -> Any:  # noqa: ANN401  # keras has no types
        """Returns the model unchanged; older code calls this before ``compile``.

        Args:
            model: a Keras model.
        """
        return model

    def wrap_optimizer(self, optimizer: Any) -> Any:  # noqa: ANN401  # keras has no types
        """Returns the optimizer unchanged; its state is part of checkpoints.

        Args:
            optimizer: a Keras optimizer.
        """
        return optimizer

    def wrap_dataset(self, dataset: Any, shard: bool = True) -> Any:  # noqa: ANN401  # data of several libraries
        """Returns the data unchanged: one slot reads all of it.

        Args:
            dataset: data for ``model.fit``.
            shard: without effect on one slot.
        """
        return dataset

    def configure_fit(
        self,
        *,
        verbose: bool | int | None = None,
        class_weight: Mapping[int, float] | None = None,
        shuffle: bool | str = True,
        validation_steps: int | None = None,
        **removed: object,
    ) -> None:
        """Sets options of ``model.fit``.

        Args:
            verbose: Keras' own progress bar; by default none, because it fills the log.
            class_weight: weight of each class in the loss, by the class's number.
            shuffle: shuffle the training data before each epoch, if it is an array.
            validation_steps: number of batches of a validation; None reads all the data.
            **removed: options that Keras 3 no longer has.

        Raises:
            ValueError: an option of Keras 2, such as ``workers``, is set: the data object has it now.
        """
        given = sorted(name for name, value in removed.items() if value)
        if given:
            raise ValueError(
                f"configure_fit: {', '.join(given)}: Keras 3 has no such option of fit(); set it on your data, for "
                "example keras.utils.PyDataset(workers=2, use_multiprocessing=True)"
            )
        weights = {} if class_weight is None else {"class_weight": dict(class_weight)}
        self._fit_options = {"verbose": int(verbose or 0), "shuffle": shuffle, **weights}
        self._validation_steps = validation_steps


class TFKerasTrial(abc.ABC):
    """Base class of Keras trials: the model and its data.

    The configuration says how long to train (``searcher.max_length`` or ``max_time``), when to validate
    (``min_validation_period``) and when to save (``min_checkpoint_period``, ``checkpoint_policy``). Names of validation
    metrics begin with ``val_``, for example ``searcher.metric: val_loss``.

    >>> class MyTrial(TFKerasTrial):  # doctest: +SKIP
    ...     def __init__(self, context):
    ...         self.context = context
    ...     def build_model(self):
    ...         model = keras.Sequential([keras.layers.Dense(10, activation="softmax")])
    ...         model.compile("adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    ...         return model
    ...     def build_training_data_loader(self):
    ...         return x, y
    ...     def build_validation_data_loader(self):
    ...         return a, b
    """

    kind = "TFKerasTrial"
    trial_context_class = TFKerasTrialContext

    @abc.abstractmethod
    def __init__(self, context: TFKerasTrialContext) -> None:
        """Reads hyperparameters.

        Args:
            context: the context of the trial.
        """

    @abc.abstractmethod
    def build_model(self) -> Any:  # noqa: ANN401  # keras has no types
        """Returns the compiled model."""

    @abc.abstractmethod
    def build_training_data_loader(self) -> Any:  # noqa: ANN401  # data of several libraries
        """Returns the training data: a tuple of arrays ``(x, y)`` or ``(x, y, sample_weight)``, or any data of ``fit``.

        Arrays are cut into batches of ``global_batch_size``.
        """

    @abc.abstractmethod
    def build_validation_data_loader(self) -> Any:  # noqa: ANN401  # data of several libraries
        """Returns the validation data, in the same forms."""

    def keras_callbacks(self) -> list[Any]:
        """Returns more callbacks for ``model.fit``; they start anew with each attempt."""
        return []
