import functools

from api.config import *
from api.ecs import Commands, DataQuery, MasterWorkerECS, ModelQuery, RawDataQuery


def rollout(
    commands: Commands,
    model: ModelQuery["actor"],
    prompts: RawDataQuery["prompts"],
    prompt_att_mask: RawDataQuery["prompt_att_mask"],
):
    inputs = commands.build_model_inputs(prompts=prompts, prompt_att_mask=prompt_att_mask)
    res = model.generate(inputs)
    commands.set_data("seq", res["seq"])
    commands.set_data("logp", res["logp"])
    commands.set_data("attention_mask", res["attention_mask"])
    commands.set_data("logits_ignoring_mask", res["logits_ignoring_mask"])


def inference_reward(
    commands: Commands,
    model: ModelQuery["reward"],
    seq: DataQuery["seq"],
    attention_mask: DataQuery["attention_mask"],
    prompts: DataQuery["prompts"],
):
    inputs = commands.build_model_inputs(input_ids=seq, attention_mask=attention_mask, prompts=prompts)
    res = model(inputs)
    commands.set_data("rewards", res["scores"])


def inference_ref_logits(
    commands: Commands,
    model: ModelQuery["ref"],
    seq: DataQuery["seq"],
    attention_mask: DataQuery["attention_mask"],
):
    res = model(commands.build_model_inputs(input_ids=seq, attention_mask=attention_mask))
    commands.set_data("ref_logp", res["logp"])


def inference_values(
    commands: Commands,
    model: ModelQuery["critic"],
    seq: DataQuery["seq"],
    attention_mask: DataQuery["attention_mask"],
):
    res = model(commands.build_model_inputs(input_ids=seq, attention_mask=attention_mask))
    commands.set_data("values", res["scores"])


def train_actor(
    commands: Commands,
    model: ModelQuery["actor"],
    seq: DataQuery["seq"],
    logp: DataQuery["logp"],
    ref_logp: DataQuery["ref_logp"],
    rewards: DataQuery["rewards"],
    values: DataQuery["values"],
    mask: DataQuery["logits_ignoring_mask"],
):
    inputs = commands.build_model_inputs(
        input_ids=seq, logp=logp, ref_logp=ref_logp, rewards=rewards, values=values, logits_ignoring_mask=mask
    )
    commands.log(model.train_step(inputs))


def train_critic(
    commands: Commands,
    model: ModelQuery["critic"],
    seq: DataQuery["seq"],
    logp: DataQuery["logp"],
    ref_logp: DataQuery["ref_logp"],
    rewards: DataQuery["rewards"],
    values: DataQuery["values"],
):
    inputs = commands.build_model_inputs(input_ids=seq, logp=logp, ref_logp=ref_logp, rewards=rewards, values=values)
    commands.log(model.train_step(inputs))


class PlotPPOExperiment(Experiment):
    def __init__(self, n_actors=2, n_critics=2, n_rewards=1, n_refs=1, seed=1, batch_size_per_device=2):
        self.n_actors = n_actors
        self.n_critics = n_critics
        self.n_rewards = n_rewards
        self.n_refs = n_refs
        self.n_data_workers = 1
        self.seed = seed
        self.batch_size_per_device = batch_size_per_device

    def scheduling_setup(self) -> ExperimentScheduling:
        return ExperimentScheduling(
            data_worker=TasksGroup(
                count=self.n_data_workers,
                scheduling=Scheduling.data_worker_default(cpu=2, mem=10000, nodelist="node-[01-08]"),
            ),
            master_worker=TasksGroup(count=1, scheduling=Scheduling.master_worker_default(cpu=4, mem=10000)),
            model_worker=[
                TasksGroup(
                    count=count,
                    scheduling=Scheduling.model_worker_default(cpu=4, gpu=1, gpu_type="tesla", mem=60000),
                )
                for count in (self.n_actors, self.n_critics, self.n_rewards, self.n_refs)
            ],
        )

    def initial_setup(self) -> ExperimentConfig:
        root = os.path.join(os.path.expanduser("~"), "models")
        actor_path = os.path.join(root, "gpt2")

        data_worker = [
            DataWorker(
                tokenizer_name_or_path=actor_path,
                datasets=[Dataset("plot_prompt", args=dict(dataset_path="prompts.jsonl", max_seq_len=128))],
                stream=RequestReplyStream(f"data_{i}", serialization_method="pickle_compress"),
                dataloader=DataLoader("default", args=dict(batch_size=self.batch_size_per_device * self.n_actors)),
                seed=self.seed,
            )
            for i in range(self.n_data_workers)
        ]

        train_backend = ModelBackend(
            "ds_train",
            args=dict(
                optimizer_name="adam",
                optimizer_config=dict(lr=1e-5, weight_decay=0.0, betas=(0.9, 0.95)),
                warmup_steps_proportion=0.0,
                min_lr_ratio=0.0,
                zero_stage=2,
            ),
        )
        inference_backend = ModelBackend("ds_inference")
        ppo_kwargs = dict(n_minibatches=4, kl_ctl=0.1, discount=1.0, gae_lambda=1.0, eps_clip=0.2)

        actor = Model("causal_lm", args=dict(model_name_or_path=actor_path))
        ref = copy.deepcopy(actor)
        reward = Model("plot_reward", args=dict(model_name_or_path=actor_path, head=os.path.join(root, "head.bin")))
        parts = [
            (
                "actor",
                self.n_actors,
                actor,
                ModelInterface("plot_actor", args=copy.deepcopy(ppo_kwargs)),
                train_backend,
            ),
            (
                "critic",
                self.n_critics,
                copy.deepcopy(reward),
                ModelInterface("plot_critic", args=ppo_kwargs),
                train_backend,
            ),
            ("reward", self.n_rewards, reward, ModelInterface("plot_reward"), inference_backend),
            ("ref", self.n_refs, ref, ModelInterface("plot_actor", args=ppo_kwargs), inference_backend),
        ]
        model_worker: List[ModelWorker] = []
        for name, count, model, interface, backend in parts:
            for _ in range(count):
                model_worker.append(
                    ModelWorker(
                        seed=self.seed,
                        model=model,
                        interface=interface,
                        backend=backend,
                        model_name=name,
                        stream=RequestReplyStream(f"model_{len(model_worker)}"),
                        cudnn_benchmark=True,
                    )
                )

        ecs = MasterWorkerECS(model_worker).add_systems(
            [rollout, inference_reward, inference_ref_logits, inference_values, train_actor, train_critic]
        )
        return ExperimentConfig(
            total_train_epochs=4,
            save_frequency_epochs=None,
            save_frequency_steps=20,
            save_frequency_seconds=None,
            eval_frequency_epochs=None,
            master_ecs=ecs,
            data_worker=data_worker,
            model_worker=model_worker,
        )


for s in range(1, 4):
    register_experiment(f"plot-ppo-s{s}", functools.partial(PlotPPOExperiment, seed=s))
register_experiment("plot-ppo", PlotPPOExperiment)
