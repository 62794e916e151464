"""Supervised warm-up: the actor learns what texts look like. ``models/actor`` of the checkpoint is for PPO."""

from api.config import *
from api.ecs import Commands, MasterWorkerECS, ModelQuery, RawDataQuery
from impl import folders


def train(
    commands: Commands,
    actor: ModelQuery["actor"],
    input_ids: RawDataQuery["input_ids"],
    attention_mask: RawDataQuery["attention_mask"],
):
    inputs = commands.build_model_inputs(input_ids=input_ids, attention_mask=attention_mask)
    commands.log(actor.train_step(inputs))


class Warmup(Experiment):
    def __init__(self, base=folders.BASE, epochs=1, batch_size=32, replicas=1):
        self.base, self.epochs, self.batch_size, self.replicas = base, epochs, batch_size, replicas

    def scheduling_setup(self):
        return ExperimentScheduling(
            data_worker=TasksGroup(1, Scheduling.data_worker_default()),
            model_worker=TasksGroup(self.replicas, Scheduling.model_worker_default()),
            master_worker=TasksGroup(1, Scheduling.master_worker_default()),
        )

    def initial_setup(self):
        folders.check(self.base)
        workers = [
            ModelWorker(
                seed=1,
                model=Model("causal_lm", {"model_name_or_path": self.base}),
                interface=ModelInterface("supervised"),
                backend=ModelBackend("torch_train", {"optimizer_config": {"lr": 3e-3}}),
                model_name="actor",
                stream=RequestReplyStream(f"actor{index}"),
                eval_datasets=[Dataset("texts", {"items": 64})],
                eval_dataloader=DataLoader("default_eval"),
            )
            for index in range(self.replicas)
        ]
        return ExperimentConfig(
            total_train_epochs=self.epochs,
            master_ecs=MasterWorkerECS(workers).add_systems([train]),
            data_worker=[
                DataWorker(
                    tokenizer_name_or_path=self.base,
                    datasets=[Dataset("texts")],
                    stream="data",
                    dataloader=DataLoader("default", {"batch_size": self.batch_size}),
                )
            ],
            model_worker=workers,
            eval_frequency_epochs=1,
        )


register_experiment("warmup", functools.partial(Warmup, base=os.environ.get("BASE_MODEL", folders.BASE)))
