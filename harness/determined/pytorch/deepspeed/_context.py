"""``DeepSpeedTrialContext``: wraps engines and counts the micro batches of a batch."""

from typing import Any

from determined.pytorch._trial_context import TrialContext


class DeepSpeedTrialContext(TrialContext):
    """Made by :func:`determined.pytorch.deepspeed.init`; a trial keeps it and wraps its engines with it."""

    _one_call = False

    def wrap_model_engine(self, model: Any) -> Any:
        """Makes an engine, as ``deepspeed.initialize`` returns it, part of checkpoints; the same engine comes back."""
        if not hasattr(model, "gradient_accumulation_steps"):
            raise TypeError(
                f"wrap_model_engine takes what deepspeed.initialize returns first, not {type(model).__name__}"
            )
        if getattr(model, "is_pipe_parallel", False) or type(model).__name__ == "PipelineEngine":
            raise NotImplementedError(
                "pipeline parallel engines are not offered yet; train with ZeRO, or without a PipelineModule"
            )
        self.models.append(model)
        return model

    def set_mpu(self, mpu: Any) -> None:
        """Refused: model parallel units are not offered yet."""
        raise NotImplementedError("model parallel units (set_mpu) are not offered yet; every slot is data parallel")

    @property
    def use_pipeline_parallel(self) -> bool:
        """Always false yet."""
        return False

    def disable_auto_grad_accumulation(self) -> None:
        """``train_batch`` is called once a batch and takes all micro batches itself."""
        self._one_call = True

    def disable_dataset_reproducibility_checks(self) -> None:
        """Lets the trial return torch data loaders of its own."""
        self.experimental.disable_dataset_reproducibility_checks()

    def get_train_micro_batch_size_per_gpu(self) -> int:
        """Records that one slot takes through the model at once."""
        return int(self._engine().train_micro_batch_size_per_gpu())

    def get_num_micro_batches_per_slot(self) -> int:
        """Micro batches of one slot in a batch: the engine's gradient accumulation steps."""
        return int(self._engine().gradient_accumulation_steps())

    def _engine(self) -> Any:
        if not self.models:
            raise RuntimeError("no engine is wrapped yet: call context.wrap_model_engine in the trial's __init__ first")
        return self.models[0]
