"""PPO with actor, critic, reference and reward: two epochs of four steps."""

import functools

from api.config import *
from api.ecs import Commands, DataQuery, MasterWorkerECS, ModelQuery, RawDataQuery
from impl import faults

steps = []


def rollout(commands: Commands, actor: ModelQuery["actor"], prompts: RawDataQuery["prompts"]):
    result = actor.generate(commands.build_model_inputs(prompts=prompts))
    commands.set_data("seq", result["seq"])
    commands.set_data("logp", result["logp"])


def reference(commands: Commands, ref: ModelQuery["ref"], seq: DataQuery["seq"]):
    commands.set_data("ref_logp", ref(commands.build_model_inputs(seq=seq))["logp"])


def score(
    commands: Commands, reward: ModelQuery["reward"], seq: DataQuery["seq"], prompts: DataQuery["prompts"]
):  # raw data by DataQuery
    assert seq[:, : prompts.shape[1]].tolist() == prompts.tolist()
    steps.append(seq)
    faults.fail_at("master_worker", 0, "score", len(steps))
    scores = reward(commands.build_model_inputs(seq=seq))["scores"]
    commands.set_data("scores", scores)
    commands.log({"reward": scores.mean()})


def evaluate_values(commands: Commands, critic: ModelQuery["critic"], seq: DataQuery["seq"]):
    commands.set_data("values", critic(commands.build_model_inputs(seq=seq))["values"])


def train_actor(
    commands: Commands,
    actor: ModelQuery["actor"],
    seq: DataQuery["seq"],
    logp: DataQuery["logp"],
    ref_logp: DataQuery["ref_logp"],
    scores: DataQuery["scores"],
    values: DataQuery["values"],
):
    returns = scores - 0.05 * (logp - ref_logp).sum(1)
    inputs = commands.build_model_inputs(seq=seq, logp=logp, advantages=returns - values)
    commands.log(actor.train_step(inputs))


def train_critic(commands: Commands, critic: ModelQuery["critic"], seq: DataQuery["seq"], scores: DataQuery["scores"]):
    commands.log(critic.train_step(commands.build_model_inputs(seq=seq, returns=scores)))


class TinyPPO(Experiment):
    def __init__(self, replicas=1, data_workers=1, backend="torch_train", zero_stage=None, save_steps=None):
        self.replicas = {"actor": replicas, "critic": 1, "ref": 1, "reward": 1}
        self.data_workers = data_workers
        self.save_steps = save_steps
        self.backend = backend
        self.backend_args = {"optimizer_config": {"lr": 0.02}, "warmup_steps_proportion": 0.2}
        if zero_stage is not None:
            self.backend_args |= {"zero_stage": zero_stage, "enable_fp16": False}

    def scheduling_setup(self):
        return ExperimentScheduling(
            data_worker=TasksGroup(self.data_workers, Scheduling.data_worker_default()),
            model_worker=[TasksGroup(count, Scheduling.model_worker_default()) for count in self.replicas.values()],
            master_worker=TasksGroup(1, Scheduling.master_worker_default()),
        )

    def initial_setup(self):
        train = ModelBackend(self.backend, self.backend_args)
        kinds = {
            "actor": ("tiny_lm", "tiny_actor", train),
            "critic": ("tiny_value", "tiny_critic", train),
            "ref": ("tiny_lm", "tiny_actor", "torch_inference"),
            "reward": ("tiny_value", "tiny_reward", "torch_inference"),
        }
        workers = [
            ModelWorker(1, model, interface, backend, name, RequestReplyStream(f"{name}{index}"))
            for name, (model, interface, backend) in kinds.items()
            for index in range(self.replicas[name])
        ]
        ecs = MasterWorkerECS(workers).add_systems(
            [rollout, reference, score, evaluate_values, train_actor, train_critic]
        )
        return ExperimentConfig(
            total_train_epochs=2,
            master_ecs=ecs,
            data_worker=[
                DataWorker(
                    "", ["prompts"], f"data{index}", DataLoader("default", {"batch_size": 8 // self.data_workers})
                )
                for index in range(self.data_workers)
            ],
            model_worker=workers,
            save_frequency_steps=self.save_steps,
            save_frequency_seconds=None,
        )


register_experiment("tiny-ppo", TinyPPO)
register_experiment("tiny-ppo-two", functools.partial(TinyPPO, replicas=2, data_workers=2, save_steps=3))
register_experiment("tiny-ppo-saves", functools.partial(TinyPPO, save_steps=3))
for stage in (0, 1, 2):
    register_experiment(f"tiny-ppo-zero{stage}", functools.partial(TinyPPO, 2, 1, "ds_train", stage))
