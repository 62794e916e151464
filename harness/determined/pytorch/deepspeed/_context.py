"""``DeepSpeedTrialContext``: wraps engines and counts the micro batches of a batch."""

from typing import Any

from determined.pytorch._trial_context import TrialContext


class DeepSpeedTrialContext(TrialContext):
    """The context of a :class:`DeepSpeedTrial`: wraps its engines.

    :func:`determined.pytorch.deepspeed.init` makes it.
    """

    models: list[Any]  # engines; deepspeed has no types
    _one_call = False

    def wrap_model_engine(self, model: Any) -> Any:  # noqa: ANN401  # deepspeed has no types, and only the trial knows its batches
        """Makes an engine part of checkpoints and returns it.

        Args:
            model: the engine that ``deepspeed.initialize`` returned.

        Raises:
            TypeError: ``model`` is no engine.
            NotImplementedError: the engine is pipeline parallel.
        """
        if not hasattr(model, "gradient_accumulation_steps"):
            raise TypeError(f"wrap_model_engine needs the engine from deepspeed.initialize, not {type(model).__name__}")
        if getattr(model, "is_pipe_parallel", False) or type(model).__name__ == "PipelineEngine":
            raise NotImplementedError(
                "pipeline parallel engines are not supported yet; train with ZeRO, or without a PipelineModule"
            )
        self.models.append(model)
        return model

    def set_mpu(self, mpu: object) -> None:
        """Raises NotImplementedError: model parallel units are not supported.

        Args:
            mpu: ignored.
        """
        raise NotImplementedError("model parallel units (set_mpu) are not supported yet; all slots are data parallel")

    @property
    def use_pipeline_parallel(self) -> bool:
        """Returns False: pipeline parallelism is not supported."""
        return False

    def disable_auto_grad_accumulation(self) -> None:
        """Makes the trainer call ``train_batch`` once per batch; the trial takes all micro batches itself."""
        self._one_call = True

    def disable_dataset_reproducibility_checks(self) -> None:
        """Allows the trial to return torch data loaders of its own."""
        self.experimental.disable_dataset_reproducibility_checks()

    def get_train_micro_batch_size_per_gpu(self) -> int:
        """Returns the number of records in a micro batch of one slot."""
        return int(self._engine().train_micro_batch_size_per_gpu())

    def get_num_micro_batches_per_slot(self) -> int:
        """Returns the number of micro batches of one slot per batch: the engine's gradient accumulation steps."""
        return int(self._engine().gradient_accumulation_steps())

    def _engine(self) -> Any:  # noqa: ANN401  # deepspeed has no types, and only the trial knows its batches
        if not self.models:
            raise RuntimeError("no engine is wrapped yet: call context.wrap_model_engine in the trial's __init__ first")
        return self.models[0]
