"""The training plan of ``Trainer.fit``, in batches."""

from dataclasses import dataclass

from determined._units import TrainUnit, in_batches, next_due

POLICIES = ("best", "all", "none")


@dataclass(frozen=True)
class TrainingPlan:
    """Decides when to report, to validate, to save a checkpoint and to end."""

    max_steps: int
    epoch_length: int
    reporting: TrainUnit | None
    validation: TrainUnit | None
    checkpoint: TrainUnit | None
    policy: str
    global_batch_size: int | None = None

    @classmethod
    def make(
        cls,
        *,
        max_length: TrainUnit,
        epoch_length: int,
        reporting: TrainUnit | None,
        validation: TrainUnit | None,
        checkpoint: TrainUnit | None,
        policy: str,
        global_batch_size: int | None,
    ) -> "TrainingPlan":
        """Checks the user's arguments and returns the plan."""
        if policy not in POLICIES:
            raise ValueError(f"checkpoint_policy must be one of {', '.join(POLICIES)}, not {policy!r}")
        if epoch_length < 1:
            raise ValueError("the training data loader has no batches")
        steps = in_batches(max_length, epoch_length=epoch_length, global_batch_size=global_batch_size)
        return cls(steps, epoch_length, reporting, validation, checkpoint, policy, global_batch_size)

    def reports_at(self, step: int) -> bool:
        """Returns True at the reporting period, before each validation and at the end."""
        return step == self.max_steps or self._due(self.reporting, step) or self.validates_at(step)

    def validates_at(self, step: int) -> bool:
        """Returns True at the validation period and at the end."""
        return step == self.max_steps or self._due(self.validation, step)

    def checkpoints_at(self, step: int) -> bool:
        """Returns True at the checkpoint period and at the end."""
        return step == self.max_steps or self._due(self.checkpoint, step)

    def boundary_after(self, step: int) -> int:
        """Returns the next step after which something other than training is due."""
        points = [self.max_steps, (step // self.epoch_length + 1) * self.epoch_length]
        points += [
            point for unit in (self.reporting, self.validation, self.checkpoint) if (point := self._next(unit, step))
        ]
        return min(points)

    def _due(self, unit: TrainUnit | None, step: int) -> bool:
        return step > 0 and self._next(unit, step - 1) == step

    def _next(self, unit: TrainUnit | None, step: int) -> int | None:
        return next_due(unit, step, epoch_length=self.epoch_length, global_batch_size=self.global_batch_size)
