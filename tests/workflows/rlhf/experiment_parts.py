"""Small configurations of RLHF experiments for tests of their checks."""

from typing import Any

from determined_workflows.rlhf.task.config import (
    DataWorker,
    ExperimentConfig,
    ExperimentScheduling,
    ModelWorker,
    Scheduling,
    TasksGroup,
)
from determined_workflows.rlhf.task.dataflow import Commands, MasterWorkerECS, ModelQuery, RawDataQuery


def train(commands: Commands, model: ModelQuery["actor"], x: RawDataQuery["x"]) -> None:
    commands.log(model.train_step(commands.build_model_inputs(x=x)))


def reference(commands: Commands, model: ModelQuery["ref"], x: RawDataQuery["x"]) -> None:
    commands.log(model(commands.build_model_inputs(x=x)))


def data_worker(index: int = 0, **changes: Any) -> DataWorker:
    return DataWorker(**{"tokenizer_name_or_path": "t", "datasets": ["d"], "stream": f"data{index}", **changes})


def model_worker(name: str, index: int, **changes: Any) -> ModelWorker:
    parts = {"seed": 1, "model": "m", "interface": "i", "backend": "b", "model_name": name, "stream": f"{name}{index}"}
    return ModelWorker(**{**parts, **changes})


def workers(actors: int = 2, refs: int = 1) -> list[ModelWorker]:
    return [
        *(model_worker("actor", index) for index in range(actors)),
        *(model_worker("ref", index) for index in range(refs)),
    ]


def config(**changes: Any) -> ExperimentConfig:
    models = changes.get("model_worker", workers())
    parts = {
        "total_train_epochs": 1,
        "master_ecs": changes.get("master_ecs") or MasterWorkerECS(models).add_systems([train, reference]),
        "data_worker": [data_worker()],
        "model_worker": models,
    }
    return ExperimentConfig(**{**parts, **changes})


def scheduling(data: Any = 1, model: Any = (2, 1), master: Any = 1, **resources: Any) -> ExperimentScheduling:
    return ExperimentScheduling(
        data_worker=TasksGroup(data, Scheduling.data_worker_default()),
        model_worker=[TasksGroup(count, Scheduling.model_worker_default(**resources)) for count in model],
        master_worker=TasksGroup(master, Scheduling.master_worker_default()),
    )
