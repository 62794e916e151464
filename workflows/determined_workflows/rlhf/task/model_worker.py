"""The model worker: holds one replica of a model and answers the calls of the master worker one after another."""

from pathlib import Path
from typing import Any

import torch

from determined_workflows.rlhf.task import data_worker, random_states, replica
from determined_workflows.rlhf.task.config import ExperimentConfig
from determined_workflows.rlhf.task.data import Loader
from determined_workflows.rlhf.task.model import FinetuneSpec, Model, make_backend, make_interface, make_model
from determined_workflows.rlhf.task.queries import HANDLES
from determined_workflows.rlhf.task.replica import Replica
from determined_workflows.rlhf.task.role_place import RolePlace, role_name
from determined_workflows.rlhf.task.set_checkpoint import SetCheckpoint
from determined_workflows.rlhf.task.streams import Request
from determined_workflows.rlhf.task.worker_config import ModelWorker
from determined_workflows.rlhf.task.worker_loop import Answer, serve

EVALUATE_DATASETS = "evaluate_datasets"


class ModelWorkerProcess:
    """The worker of one process: builds its replica and serves it.

    Args:
        config: the experiment.
        place: which worker this process is.
        checkpoint: stores and restores the set.
        device: device of the model.
        rank: number of the replica.

    Raises:
        RuntimeError: the experiment has no model for this role.
    """

    def __init__(
        self, config: ExperimentConfig, place: RolePlace, checkpoint: SetCheckpoint, device: torch.device, rank: int
    ) -> None:
        self._place = place
        self._checkpoint = checkpoint
        self._config = find_config(config, place)
        self._rank = rank
        self._replica = self._make(device)

    def run(self) -> None:
        """Serves until the master worker ends the training."""
        handlers = {**dict.fromkeys(HANDLES, self._call), EVALUATE_DATASETS: self._evaluate}
        serve(self, handlers, self._place, self._checkpoint, data_worker.method_of(self._config))

    def initialize(self, request: Request) -> None:
        spec = FinetuneSpec(**request.metadata["spec"])
        # the same in all replicas, whose parameters must begin equal
        random_states.seed_all(self._config.seed)
        self._replica.initialize(spec, request.metadata["handles"])
        random_states.seed_all(self._config.seed, self._rank)

    def restore(self, checkpoint: SetCheckpoint, folder: Path) -> None:
        own = checkpoint.read(folder)
        first = own if self._rank == 0 else checkpoint.read(folder, f"{self._place.role}-0")
        self._replica.restore_files(folder, self._place.role)
        self._replica.load_state_dict(own, first.get("training"))

    def state_dict(self) -> dict[str, Any]:
        return self._replica.state_dict()

    def store_files(self, folder: Path, *, saves: bool) -> None:
        self._replica.store(folder, self._place.role, saves=saves)

    def after_reply(self) -> None:
        replica.free_memory(empties_cuda_cache=self._config.cuda_cache_cleanliness)

    def _call(self, request: Request) -> Answer:
        return self._replica.call(request.handle, request.data)

    def _evaluate(self, request: Request) -> Answer:
        return None, {"stats": self._replica.evaluate()}

    def _make(self, device: torch.device) -> Replica:
        config = self._config
        torch.backends.cudnn.benchmark = config.cudnn_benchmark
        torch.backends.cudnn.deterministic = config.cudnn_deterministic
        random_states.seed_all(config.seed)
        model = make_model(config.model, config.model_name, device)
        return Replica(
            self._place.name,
            model,
            make_interface(config.interface),
            make_backend(config.backend),
            self._eval_loader(model),
            self._rank,
        )

    def _eval_loader(self, model: Model) -> Loader | None:
        if not self._config.eval_datasets:
            return None
        util = data_worker.utility(self._config.seed, self._rank, self._place, model.tokenizer)
        cache = data_worker.cache_of(self._config, str(getattr(model.tokenizer, "name_or_path", "")))
        return data_worker.make_loader(self._config.eval_datasets, self._config.eval_dataloader, util, cache)


def find_config(config: ExperimentConfig, place: RolePlace) -> ModelWorker:
    """Returns the configuration of the model worker at a place. Raises RuntimeError if the experiment has none."""
    replicas = [worker for worker in config.model_worker if role_name(worker.model_name) == place.role]
    if place.index >= len(replicas):
        models = ", ".join(dict.fromkeys(worker.model_name for worker in config.model_worker))
        raise RuntimeError(f"the experiment has no {place.name}; its models are {models}")
    return replicas[place.index]


def handles_of(config: ExperimentConfig, model: str) -> list[str]:
    """Returns the calls of a model that the dataflow makes, and ``evaluate`` if the model has evaluation datasets."""
    workers = [worker for worker in config.model_worker if worker.model_name == model]
    evaluates = any(worker.eval_datasets for worker in workers)
    called = {handle for name, handle in config.master_worker[0].leveled_exec_funcs.calls if name == model}
    return sorted(called | ({"evaluate"} if evaluates else set()))
