"""The training loop of one process, and what it needs to go on from a checkpoint with the same bits."""

import contextlib
import logging
from pathlib import Path

import torch

from mlstm.checkpoints import FolderCheckpoints, State
from mlstm.cluster import Cluster, connect
from mlstm.config_schema import Config
from mlstm.data import Samples
from mlstm.devices import Devices, Place
from mlstm.errors import ConfigError
from mlstm.loggers import MetricLogger, open_loggers
from mlstm.model import LanguageModel
from mlstm.optimization import build_optimizer, lr_share
from mlstm.profiling import profiler
from mlstm.run_folder import write_result

logger = logging.getLogger(__name__)


def train(place: Place, config: Config, samples: Samples, run_folder: Path, resume_from: Path | None) -> float | None:
    """Trains one process's share and writes the result of the run, unless a cluster asks to leave earlier.

    ``resume_from`` is the file of another run's checkpoint from which to go on. Returns the final loss; None in other
    processes than the first, and after leaving.
    """
    last_step = count_steps(config, samples, place.world_size)
    with contextlib.ExitStack() as stack:
        devices = stack.enter_context(Devices(config, place))
        cluster = stack.enter_context(connect(last_step)) if devices.is_first else None
        trainer = Trainer(config, samples, devices, last_step)
        _restore(trainer, cluster, resume_from)
        sinks: list[MetricLogger] = []
        checkpoints: FolderCheckpoints | Cluster | None = cluster
        if devices.is_first:
            sinks = [*open_loggers(config, run_folder), *([cluster] if cluster else [])]
            if cluster is None:
                checkpoints = FolderCheckpoints(config.checkpointing, run_folder)
            else:
                logger.info("The cluster stores the checkpoints; its policy decides which of them are kept.")
        for each in (*sinks, checkpoints):
            if each is not None:
                stack.callback(each.close)
        profile = stack.enter_context(profiler(config.profiling, run_folder if devices.is_first else None))
        while trainer.step < last_step:
            metrics = trainer.do_step()
            profile()
            is_last = trainer.step == last_step
            if devices.is_first:
                for sink in sinks if metrics else ():
                    sink.log(trainer.step, metrics)
            # The last step is followed by nothing that could be left.
            leaving = not is_last and devices.agree(cluster is not None and cluster.should_leave())
            is_due = trainer.step % config.checkpointing.every_n_steps == 0
            if checkpoints is not None and (leaving or is_last or is_due):
                checkpoints.save(trainer.step, trainer.state(), trainer.validation_loss)
            if leaving:
                logger.info("Leaving after step %d, as the cluster asked.", trainer.step)
                return None
        if not devices.is_first:
            return None
        final_loss = trainer.validate()
    write_result(run_folder, final_loss, last_step)
    logger.info("Finished after %d steps with loss %.6f.", last_step, final_loss)
    return final_loss


def count_steps(config: Config, samples: Samples, world_size: int) -> int:
    """Returns the number of optimizer steps of the whole run.

    Raises:
        ConfigError: an epoch has fewer samples than a step needs, or profiling begins after the end.
    """
    each_step = world_size * config.batch_size_per_device * config.trainer.gradient_accumulation_steps
    steps = min(config.num_train_steps, config.num_epochs * (len(samples.training) // each_step))
    if steps < 1:
        raise ConfigError(f"a step needs {each_step} samples, but the data has {len(samples.training)}")
    first = config.profiling.first_step
    if first is not None and first + config.profiling.num_steps > steps:
        raise ConfigError(
            f"profiling: steps {first} to {first + config.profiling.num_steps - 1} were asked for, "
            f"but the last of {steps} steps is {steps - 1}"
        )
    return steps


def _restore(trainer: "Trainer", cluster: Cluster | None, resume_from: Path | None) -> None:
    """Loads the trial's own newest checkpoint, which the first process sends to the others, or that of another run."""
    state: State | None = None
    if cluster is not None:
        with cluster.latest() as latest:
            state = trainer.read(latest) if latest is not None else None
    resumed_by_cluster = trainer.devices.agree(state is not None)
    if resumed_by_cluster:
        state = trainer.devices.share(state)
    elif resume_from is not None:
        state = trainer.read(resume_from)
        logger.info("Resumes from %s", resume_from.parent)
    if state is not None:
        trainer.load(state)


class Trainer:
    """Model, optimizer and the number of finished steps."""

    def __init__(self, config: Config, samples: Samples, devices: Devices, last_step: int) -> None:
        torch.manual_seed(config.seed)
        self.step = 0
        self.devices = devices
        self.validation_loss: float | None = None
        self._config = config
        self._samples = samples
        self._last_step = last_step
        self._model = LanguageModel(config.model).to(devices.device)
        self._optimizer = build_optimizer(config.optimizer, self._model.parameters())

    def do_step(self) -> dict[str, float]:
        """Does one optimizer step and returns the metrics that are to be logged after it."""
        config, trainer = self._config, self._config.trainer
        lr = config.optimizer.lr * lr_share(config.scheduler, self.step, self._last_step - 1)
        for group in self._optimizer.param_groups:
            group["lr"] = lr
        loss = self._average_gradients()
        if trainer.gradient_clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(self._model.parameters(), trainer.gradient_clip_norm)
        self._optimizer.step()
        self.step += 1
        is_last = self.step == self._last_step
        metrics = {}
        if self.step % trainer.log_every_n_steps == 0 or is_last:
            metrics["loss"] = loss
        if config.lr_monitor.every_n_steps is not None and self.step % config.lr_monitor.every_n_steps == 0:
            metrics["lr"] = lr
        if self.devices.is_first and (self.step % trainer.val_every_n_steps == 0 or is_last):
            metrics["val_loss"] = self.validate()
            logger.info("step %d: loss %.4f, validation loss %.4f", self.step, loss, metrics["val_loss"])
        return metrics

    def _average_gradients(self) -> float:
        """Sets the gradients of a step and returns its loss, both as means over all processes."""
        config = self._config
        parts = config.trainer.gradient_accumulation_steps
        batch = self._samples.batch(
            self.step,
            seed=config.seed,
            rank=self.devices.rank,
            world_size=self.devices.world_size,
            per_device=config.batch_size_per_device,
            parts=parts,
        ).to(self.devices.device)
        self._optimizer.zero_grad()
        total = torch.zeros(1, device=self.devices.device)
        for part in batch:
            loss = self._model.loss(part) / parts
            loss.backward()
            total += loss.detach()
        parameters = list(self._model.parameters())
        gradients = [each.grad if each.grad is not None else torch.zeros_like(each) for each in parameters]
        if self.devices.world_size > 1:
            flat = torch.cat([total, *(gradient.flatten() for gradient in gradients)])
            self.devices.average(flat)
            total, *averages = flat.split([1, *(each.numel() for each in parameters)])
            for parameter, average in zip(parameters, averages, strict=True):
                parameter.grad = average.view_as(parameter)
        return float(total.item())

    @torch.no_grad()
    def validate(self) -> float:
        """Returns the loss over all validation samples."""
        self._model.eval()
        self.validation_loss = float(self._model.loss(self._samples.validation.to(self.devices.device)).item())
        self._model.train()
        return self.validation_loss

    def state(self) -> State:
        """Returns all that a resumed run needs; it refers to live tensors."""
        return {
            "steps": self.step,
            "model": self._model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "validation_loss": self.validation_loss,
        }

    def read(self, path: Path) -> State:
        state: State = torch.load(path, map_location=self.devices.device, weights_only=True)
        return state

    def load(self, state: State) -> None:
        """Goes on from a state.

        Raises:
            ConfigError: it is that of a model with other sizes, or is beyond the end of this run.
        """
        try:
            self._model.load_state_dict(state["model"])
            self._optimizer.load_state_dict(state["optimizer"])
        except (RuntimeError, ValueError) as error:
            raise ConfigError(
                f"resume_from_folder: the checkpoint is of another model or optimizer: {error}"
            ) from error
        self.step = int(state["steps"])
        self.validation_loss = state["validation_loss"]
        if self.step > self._last_step:
            raise ConfigError(
                f"resume_from_folder: the checkpoint is of step {self.step}, but this run ends after {self._last_step}"
            )
