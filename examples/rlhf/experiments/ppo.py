"""PPO with actor, critic, reference and reward.

``ACTOR_MODEL`` and ``REWARD_MODEL`` are folders of Hugging Face, such as those that ``warmup`` and ``reward`` saved.
Without a reward model the reward is the rule of the task itself.
"""

from api.config import *
from api.ecs import Commands, DataQuery, MasterWorkerECS, ModelQuery, RawDataQuery
from impl import folders, ppo, words

KL_PENALTY = 0.02


def rollout(
    commands: Commands,
    actor: ModelQuery["actor"],
    prompt_input_ids: RawDataQuery["prompt_input_ids"],
    prompt_attention_mask: RawDataQuery["prompt_attention_mask"],
):
    inputs = commands.build_model_inputs(input_ids=prompt_input_ids, attention_mask=prompt_attention_mask)
    written = actor.generate(inputs)
    commands.set_data("seq", written["seq"])
    commands.set_data("mask", written["attention_mask"])
    commands.set_data("logprobs", written["logprobs"])


def reference(commands: Commands, ref: ModelQuery["ref"], seq: DataQuery["seq"], mask: DataQuery["mask"]):
    answer = ref(commands.build_model_inputs(seq=seq, attention_mask=mask))
    commands.set_data("ref_logprobs", answer["logprobs"])


def score(commands: Commands, reward: ModelQuery["reward"], seq: DataQuery["seq"], mask: DataQuery["mask"]):
    answer = reward(commands.build_model_inputs(seq=seq, attention_mask=mask))
    commands.set_data("scores", answer["scores"])
    commands.log({"reward": answer["scores"].mean()})


def value(commands: Commands, critic: ModelQuery["critic"], seq: DataQuery["seq"], mask: DataQuery["mask"]):
    answer = critic(commands.build_model_inputs(seq=seq, attention_mask=mask))
    commands.set_data("values", answer["values"])


def estimate(
    commands: Commands,
    logprobs: DataQuery["logprobs"],
    ref_logprobs: DataQuery["ref_logprobs"],
    scores: DataQuery["scores"],
    values: DataQuery["values"],
):
    kl = logprobs - ref_logprobs
    rewards = -KL_PENALTY * kl
    rewards[:, -1] += scores
    advantages, returns = ppo.advantages_and_returns(rewards, values)
    commands.set_data("advantages", (advantages - advantages.mean()) / (advantages.std() + 1e-6))
    commands.set_data("returns", returns)
    commands.log({"kl": kl.sum(1).mean()})


def train_actor(
    commands: Commands,
    actor: ModelQuery["actor"],
    seq: DataQuery["seq"],
    mask: DataQuery["mask"],
    logprobs: DataQuery["logprobs"],
    advantages: DataQuery["advantages"],
):
    inputs = commands.build_model_inputs(seq=seq, attention_mask=mask, logprobs=logprobs, advantages=advantages)
    commands.log(actor.train_step(inputs))


def train_critic(
    commands: Commands,
    critic: ModelQuery["critic"],
    seq: DataQuery["seq"],
    mask: DataQuery["mask"],
    returns: DataQuery["returns"],
):
    inputs = commands.build_model_inputs(seq=seq, attention_mask=mask, returns=returns)
    commands.log(critic.train_step(inputs))


class PPO(Experiment):
    def __init__(self, actor=folders.BASE, reward=None, epochs=1, batch_size=32, prompts=1280, backend=None):
        self.actor, self.reward = actor, reward
        self.epochs, self.batch_size, self.prompts = epochs, batch_size, prompts
        self.backend = backend or ModelBackend("torch_train")

    def scheduling_setup(self):
        return ExperimentScheduling(
            data_worker=TasksGroup(1, Scheduling.data_worker_default()),
            model_worker=[TasksGroup(1, Scheduling.model_worker_default()) for _ in range(4)],
            master_worker=TasksGroup(1, Scheduling.master_worker_default()),
        )

    def initial_setup(self):
        folders.check(self.actor)
        optimizer = {"optimizer_config": {"lr": 2e-3}, "lr_scheduler_type": "constant"}
        train = ModelBackend(self.backend.type_, {**optimizer, **self.backend.args})
        frozen = ModelBackend("torch_inference")
        lm = Model("causal_lm", {"model_name_or_path": self.actor})
        scorer = Model("causal_value", {"model_name_or_path": self.reward or self.actor})
        workers = [
            ModelWorker(1, lm, ModelInterface("ppo_actor"), train, "actor", "actor"),
            ModelWorker(
                1,
                Model("causal_value", {"model_name_or_path": self.actor}),
                ModelInterface("ppo_critic"),
                train,
                "critic",
                "critic",
            ),
            ModelWorker(1, lm, ModelInterface("ppo_actor"), frozen, "ref", "ref"),
            ModelWorker(
                1, scorer, ModelInterface("paired_reward" if self.reward else "word_reward"), frozen, "reward", "reward"
            ),
        ]
        steps = [rollout, reference, score, value, estimate, train_actor, train_critic]
        return ExperimentConfig(
            total_train_epochs=self.epochs,
            master_ecs=MasterWorkerECS(workers).add_systems(steps),
            data_worker=[
                DataWorker(
                    tokenizer_name_or_path=self.actor,
                    datasets=[Dataset("prompts", {"items": self.prompts})],
                    stream="data",
                    dataloader=DataLoader("default", {"batch_size": self.batch_size}),
                )
            ],
            model_worker=workers,
        )


actor, reward = os.environ.get("ACTOR_MODEL", folders.BASE), os.environ.get("REWARD_MODEL") or None
deepspeed = ModelBackend("ds_train", {"zero_stage": int(os.environ.get("ZERO_STAGE", "1")), "enable_fp16": False})
register_experiment("ppo", functools.partial(PPO, actor=actor, reward=reward))
register_experiment("ppo-deepspeed", functools.partial(PPO, actor=actor, reward=reward, backend=deepspeed))
