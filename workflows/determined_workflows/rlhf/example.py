"""The project that ``det rlhf init`` writes: the modules that experiments import, and one that runs as it is."""

from pathlib import Path

from determined_workflows import example_files

NAME = "line"
_TASK = "determined_workflows.rlhf.task"
_STAR = "from {module} import *  # noqa: F403\n"
API = {
    "api/config.py": f"{_TASK}.config",
    "api/data.py": f"{_TASK}.data",
    "api/dfg.py": f"{_TASK}.dataflow",
    "api/ecs.py": f"{_TASK}.dataflow",
    "api/model.py": f"{_TASK}.model",
    "api/utils.py": f"{_TASK}.language_models",
    "base/namedarray.py": f"{_TASK}.named_array",
}
"""Module of a project → the module whose names it takes."""
EXPERIMENT = '''\
"""Fits a line to points: one data worker, one model with two replicas, and a dataflow of one function."""

from api.config import *
from api.ecs import Commands, MasterWorkerECS, ModelQuery, RawDataQuery


def train(commands: Commands, model: ModelQuery["line"], x: RawDataQuery["x"], y: RawDataQuery["y"]):
    """The dataflow: what runs in each step. `x` and `y` are what the data workers read."""
    commands.log(model.train_step(commands.build_model_inputs(x=x, y=y)))


class LineExperiment(Experiment):
    def __init__(self, epochs=4, lr=0.1, replicas=2):
        self.epochs, self.lr, self.replicas = epochs, lr, replicas

    def scheduling_setup(self):
        return ExperimentScheduling(
            data_worker=TasksGroup(1, Scheduling.data_worker_default()),
            model_worker=TasksGroup(self.replicas, Scheduling.model_worker_default()),
            master_worker=TasksGroup(1, Scheduling.master_worker_default()),
        )

    def initial_setup(self):
        data = DataWorker(
            tokenizer_name_or_path=None,
            datasets=[Dataset("points", args=dict(count=64))],
            stream=RequestReplyStream("data"),
            dataloader=DataLoader("default", args=dict(batch_size=8)),
        )
        models = [
            ModelWorker(
                seed=1,
                model=Model("line"),
                interface=ModelInterface("regression"),
                backend=ModelBackend(
                    "torch_train",
                    args=dict(optimizer_name="sgd", optimizer_config=dict(lr=self.lr), lr_scheduler_type="constant"),
                ),
                model_name="line",
                stream=RequestReplyStream(f"line{index}"),
            )
            for index in range(self.replicas)
        ]
        return ExperimentConfig(
            total_train_epochs=self.epochs,
            master_ecs=MasterWorkerECS(models).add_systems([train]).build(),
            data_worker=[data],
            model_worker=models,
        )


register_experiment("line", LineExperiment)
'''
DATA = '''\
"""Data that experiments name. A dataset takes a `DatasetUtility` first, and its items are dictionaries of tensors."""

import torch

from api.data import register_dataset


class Points(torch.utils.data.Dataset):
    """Points of y = 2 x + 1, of which each data worker reads its part."""

    def __init__(self, util, count):
        numbers = torch.linspace(-1.0, 1.0, count)
        self.numbers = numbers[util.ddp_rank :: util.world_size]

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, index):
        x = self.numbers[index].reshape(1)
        return {"x": x, "y": 2.0 * x + 1.0}


register_dataset("points", Points)
'''
MODEL = '''\
"""A model and its interface. The backend wraps the module: it adds the optimizer, and averages over replicas."""

import torch

from api.model import Model, ModelInterface, register_interface, register_model


def make_line(name, device):
    return Model(name, torch.nn.Linear(1, 1), None, device)


class Regression(ModelInterface):
    def train_step(self, model, data):
        x, y = (torch.as_tensor(data[name], device=model.device) for name in ("x", "y"))
        loss = torch.nn.functional.mse_loss(model.module(x), y)
        model.module.backward(loss)
        model.module.step()
        model.inc_version()
        return {"loss": loss.item()}


register_model("line", make_line)
register_interface("regression", Regression)
'''
FILES = {
    **{name: _STAR.format(module=module) for name, module in API.items()},
    "api/__init__.py": "",
    "base/__init__.py": "",
    "apps/__init__.py": "",
    "apps/main.py": """\
from determined_workflows.rlhf.program import main

if __name__ == "__main__":
    raise SystemExit(main())
""",
    "experiments/__init__.py": "from experiments import line\n",
    "experiments/line.py": EXPERIMENT,
    "impl/__init__.py": "",
    "impl/data.py": DATA,
    "impl/model.py": MODEL,
    ".gitignore": "__pycache__/\n/runs/\n",
}


def init(folder: Path) -> list[Path]:
    """Writes the project and returns its files. Raises Conflict and writes nothing if one of them exists."""
    return example_files.write(folder, FILES)
