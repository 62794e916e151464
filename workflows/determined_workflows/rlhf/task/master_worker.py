"""The master worker: drives the steps of the training and decides when the set is evaluated, saved and stopped."""

import dataclasses
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import torch

from determined import core
from determined_launch.environment import HANG_TIMEOUT
from determined_workflows.rlhf.task import data_worker, model_worker, random_states, step_metrics, worker_loop
from determined_workflows.rlhf.task.array_tree import NamedArray, recursive_aggregate
from determined_workflows.rlhf.task.call_watch import CallWatch, TrackedRequests, first_seconds
from determined_workflows.rlhf.task.config import ExperimentConfig
from determined_workflows.rlhf.task.frequencies import Frequency
from determined_workflows.rlhf.task.model import FinetuneSpec
from determined_workflows.rlhf.task.model_calls import ModelCalls, average
from determined_workflows.rlhf.task.process_setup import StopRequest
from determined_workflows.rlhf.task.role_place import DATA_WORKER, RolePlace, role_name
from determined_workflows.rlhf.task.set_checkpoint import SetCheckpoint
from determined_workflows.rlhf.task.streams import Reply, StreamServer, WorkersMissing

TELL_SECONDS = 60.0


class MasterWorkerProcess:
    """The worker of rank 0.

    Args:
        config: the experiment.
        place: which worker this process is.
        context: the Core API; this process reports.
        checkpoint: stores and restores the set.
    """

    def __init__(
        self, config: ExperimentConfig, place: RolePlace, context: core.Context, checkpoint: SetCheckpoint
    ) -> None:
        self._config = config
        self._context = context
        self._checkpoint = checkpoint
        self._dataflow = config.master_worker[0].leveled_exec_funcs
        self._data_workers = place.workers(DATA_WORKER)
        models = dict.fromkeys(worker.model_name for worker in config.model_worker)
        self._replicas = {name: place.workers(role_name(name)) for name in models}
        self._workers = [*self._data_workers, *(name for names in self._replicas.values() for name in names)]
        self._stop = StopRequest(time.monotonic, lambda text: print(text, flush=True))
        if context.info is None:
            self._stop.install()
        self._server = StreamServer(place.master.port, place.key, self._workers, methods=_methods(config, place))
        self._requests = TrackedRequests(self._server)
        self._calls = ModelCalls(self._requests, self._replicas)
        self._save = _frequency(config, "save")
        self._evaluate = _frequency(config, "eval")
        self._metrics_file = step_metrics.MetricsFile(checkpoint.run_folder)
        self._stored_at: int | None = None
        self._spec = FinetuneSpec(config.total_train_epochs, 0, 0, 0)

    def run(self) -> None:
        """Trains to the end, or until a stop is asked for; then the set is stored and every worker ends.

        Raises:
            WorkersMissing: a worker did not connect.
        """
        try:
            wait_for_workers(self._server, worker_loop.CONNECT_SECONDS)
            with CallWatch(self._requests.in_flight, first_seconds(os.environ.get(HANG_TIMEOUT, ""))):
                self._initialize()
                self._train()
            _replies([self._requests.request(worker, worker_loop.END) for worker in self._workers])
        finally:
            self._server.close()

    @property
    def _step(self) -> int:
        """Returns the number of steps completed."""
        return self._requests.step

    def _initialize(self) -> None:
        told = _replies([self._requests.request(worker, data_worker.DESCRIBE) for worker in self._data_workers])
        steps = min(int(reply.metadata["steps_per_epoch"]) for reply in told)
        size = sum(int(reply.metadata["batch_size"]) for reply in told)
        check_batch(size, self._replicas)
        self._spec = FinetuneSpec(self._config.total_train_epochs, steps * self._config.total_train_epochs, steps, size)
        pending = [
            self._requests.request(worker, worker_loop.INITIALIZE, None, steps_per_epoch=steps)
            for worker in self._data_workers
        ]
        for model, workers in self._replicas.items():
            spec = dataclasses.replace(self._spec, batch_size_per_device=size // len(workers))
            handles = model_worker.handles_of(self._config, model)
            pending += [
                self._requests.request(
                    worker, worker_loop.INITIALIZE, None, spec=dataclasses.asdict(spec), handles=handles
                )
                for worker in workers
            ]
        random_states.seed_all(self._config.model_worker[0].seed)
        uuid = self._checkpoint.latest()
        if uuid is not None:
            self._restore(uuid)
        _replies(pending)
        print(
            f"{self._spec.total_train_steps} steps of {steps} an epoch, beginning after step {self._step}", flush=True
        )

    def _train(self) -> None:
        if self._step >= self._spec.total_train_steps:
            print("it has finished already; the recover mode disabled begins anew", flush=True)
        while self._step < self._spec.total_train_steps:
            if self._context.preempt.should_preempt() or self._stop.is_asked:
                self._store(saves=False)
                return
            self._run_step()
        self._store(saves=True)

    def _run_step(self) -> None:
        begin = time.monotonic()
        batch, epoch, epoch_step = self._next_batch()
        logged = self._dataflow.run(batch, self._calls)  # type: ignore[arg-type]  # a NamedArray has keys and items
        self._requests.step += 1
        metrics = step_metrics.of_step(
            logged, self._calls.take_records(), epoch=epoch, seconds=time.monotonic() - begin
        )
        self._context.train.report_training_metrics(steps_completed=self._step, metrics=metrics)
        if self._context.info is None:
            print(step_metrics.line(self._step, self._spec.total_train_steps, logged, metrics), flush=True)
        self._metrics_file.add("training", self._step, metrics)
        self._context.train.report_progress(self._step / self._spec.total_train_steps)
        ends_epoch = epoch_step + 1 == self._spec.steps_per_epoch
        if self._evaluate.is_due(ends_epoch=ends_epoch):
            self._run_evaluation()
        if self._save.is_due(ends_epoch=ends_epoch):
            self._store(saves=True)

    def _next_batch(self) -> tuple[NamedArray, int, int]:
        replies = _replies([self._requests.request(worker, data_worker.FETCH) for worker in self._data_workers])
        batch = recursive_aggregate([reply.data for reply in replies], _joined)
        return batch, int(replies[0].metadata["epoch"]), int(replies[0].metadata["epoch_step"])

    def _run_evaluation(self) -> None:
        pending = {
            name: [self._requests.request(worker, model_worker.EVALUATE_DATASETS) for worker in workers]
            for name, workers in self._replicas.items()
        }
        metrics = {
            f"{name}/{key}": value
            for name, futures in pending.items()
            for key, value in average([reply.metadata["stats"] for reply in _replies(futures)]).items()
        }
        if metrics:
            self._context.train.report_validation_metrics(steps_completed=self._step, metrics=metrics)
            self._metrics_file.add("validation", self._step, metrics)

    def _store(self, *, saves: bool) -> None:
        """Stores the set unless this step is stored; with ``saves`` each model is saved by its interface as well."""
        if self._stored_at == self._step:
            return
        pending = [self._requests.request(worker, worker_loop.STORE, None, saves=saves) for worker in self._workers]
        uuid = self._checkpoint.store(self._step, self._state(), is_kept=saves)
        _replies(pending)
        self._stored_at = self._step
        print(f"checkpoint {uuid} after step {self._step}", flush=True)

    def _state(self) -> dict[str, Any]:
        return {
            "step": self._step,
            "save": self._save.state_dict(),
            "evaluate": self._evaluate.state_dict(),
            "versions": dict(self._calls.versions),
            "random": random_states.capture(),
        }

    def _restore(self, uuid: str) -> None:
        with self._checkpoint.restored(uuid) as folder:
            state = self._checkpoint.read(folder)
        self._requests.step = self._stored_at = int(state["step"])
        self._save.load_state_dict(state["save"])
        self._evaluate.load_state_dict(state["evaluate"])
        self._calls.versions.update({name: int(version) for name, version in state["versions"].items()})
        random_states.restore(state["random"])


def wait_for_workers(server: StreamServer, seconds: float, tell_every: float = TELL_SECONDS) -> None:
    """Waits until every worker has connected, and says every minute which have not.

    Raises:
        WorkersMissing: a worker did not connect within ``seconds``.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            server.wait_for_workers(max(0.0, min(tell_every, deadline - time.monotonic())))
            return
        except WorkersMissing as missing:
            if time.monotonic() >= deadline:
                raise WorkersMissing(missing.workers, seconds) from None
            print(f"waiting for {', '.join(missing.workers)}", flush=True)


def check_batch(size: int, replicas: Mapping[str, Sequence[str]]) -> None:
    """Raises ValueError if a batch cannot be divided over the replicas of a model; 0 is a size that is not known."""
    for model, workers in replicas.items():
        if size % len(workers):
            raise ValueError(
                f"a batch of {size} cannot be divided over the {len(workers)} replicas of {model}: change the batch "
                "size of the dataloader or the number of replicas"
            )


def _methods(config: ExperimentConfig, place: RolePlace) -> dict[str, str]:
    """Returns the codec of the requests to each worker."""
    methods = {
        name: data_worker.method_of(worker)
        for name, worker in zip(place.workers(DATA_WORKER), config.data_worker, strict=True)
    }
    for model in dict.fromkeys(worker.model_name for worker in config.model_worker):
        replicas = [worker for worker in config.model_worker if worker.model_name == model]
        for name, replica in zip(place.workers(role_name(model)), replicas, strict=True):
            methods[name] = data_worker.method_of(replica)
    return methods


def _frequency(config: ExperimentConfig, what: str) -> Frequency:
    return Frequency(*(getattr(config, f"{what}_frequency_{unit}") for unit in ("epochs", "steps", "seconds")))


def _joined(values: list[Any]) -> torch.Tensor:
    tensors = [torch.as_tensor(value) for value in values]
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors)


def _replies(pending: "list[Future[Reply]]") -> list[Reply]:
    return [future.result() for future in pending]
