"""The reward model learns from pairs of texts. ``models/reward`` of the checkpoint is for PPO."""

from api.config import *
from api.ecs import Commands, MasterWorkerECS, ModelQuery, RawDataQuery
from impl import folders


def train(
    commands: Commands,
    reward: ModelQuery["reward"],
    chosen_input_ids: RawDataQuery["chosen_input_ids"],
    chosen_attention_mask: RawDataQuery["chosen_attention_mask"],
    rejected_input_ids: RawDataQuery["rejected_input_ids"],
    rejected_attention_mask: RawDataQuery["rejected_attention_mask"],
):
    inputs = commands.build_model_inputs(
        chosen_input_ids=chosen_input_ids,
        chosen_attention_mask=chosen_attention_mask,
        rejected_input_ids=rejected_input_ids,
        rejected_attention_mask=rejected_attention_mask,
    )
    commands.log(reward.train_step(inputs))


class Reward(Experiment):
    def __init__(self, base=folders.BASE, epochs=1, batch_size=32):
        self.base, self.epochs, self.batch_size = base, epochs, batch_size

    def scheduling_setup(self):
        return ExperimentScheduling(
            data_worker=TasksGroup(1, Scheduling.data_worker_default()),
            model_worker=TasksGroup(1, Scheduling.model_worker_default()),
            master_worker=TasksGroup(1, Scheduling.master_worker_default()),
        )

    def initial_setup(self):
        folders.check(self.base)
        worker = ModelWorker(
            seed=1,
            model=Model("causal_value", {"model_name_or_path": self.base}),
            interface=ModelInterface("paired_reward"),
            backend=ModelBackend("torch_train", {"optimizer_config": {"lr": 3e-3}}),
            model_name="reward",
            stream="reward",
        )
        return ExperimentConfig(
            total_train_epochs=self.epochs,
            master_ecs=MasterWorkerECS([worker]).add_systems([train]),
            data_worker=[
                DataWorker(
                    tokenizer_name_or_path=self.base,
                    datasets=[Dataset("preferences")],
                    stream="data",
                    dataloader=DataLoader("default", {"batch_size": self.batch_size}),
                )
            ],
            model_worker=[worker],
        )


register_experiment("reward", functools.partial(Reward, base=os.environ.get("BASE_MODEL", folders.BASE)))
