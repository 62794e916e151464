from api.config import *
from api.ecs import *


def sft(
    commands: Commands,
    model: ModelQuery["default"],
    input_ids: RawDataQuery["input_ids"],
    attention_mask: RawDataQuery["attention_mask"],
):
    inputs = commands.build_model_inputs(
        input_ids=input_ids, attention_mask=attention_mask, metadata={"shape": [8, 128]}
    )
    commands.log(model.train_step(inputs))


class PlotSFTExperiment(Experiment):
    def __init__(self, n_models: int = 2, seed: int = 1, lora: Optional[Dict[str, Any]] = None):
        self.n_models = n_models
        self.seed = seed
        self.lora = lora

    def scheduling_setup(self) -> ExperimentScheduling:
        return ExperimentScheduling(
            data_worker=TasksGroup(count=1, scheduling=Scheduling.data_worker_default()),
            master_worker=TasksGroup(count=1, scheduling=Scheduling.master_worker_default()),
            model_worker=TasksGroup(count=self.n_models, scheduling=Scheduling.model_worker_default(gpu=1)),
        )

    def initial_setup(self) -> ExperimentConfig:
        dataset = Dataset("prompt_answer", args={"dataset_path": "train.jsonl", "max_seq_len": 128})
        eval_dataset = copy.deepcopy(dataset)
        eval_dataset.args["dataset_path"] = "valid.jsonl"
        streams = itertools.count()
        path = os.path.join(os.path.expanduser("~"), "models", "gpt2")
        model_worker = [
            ModelWorker(
                seed=self.seed,
                model=Model(
                    "causal_lm_lora" if self.lora else "causal_lm",
                    args={"model_name_or_path": path, **(self.lora or {})},
                ),
                interface=ModelInterface("plot_sft"),
                backend=ModelBackend("ds_train", args=dict(lr_scheduler_type="cosine")),
                model_name="default",
                stream=RequestReplyStream(f"model{next(streams)}"),
                eval_datasets=[eval_dataset],
                eval_dataloader=DataLoader("default_eval", args=dict(batch_size=16)),
                use_dataset_cache=True,
            )
            for _ in range(self.n_models)
        ]
        return ExperimentConfig(
            total_train_epochs=math.ceil(2.5),
            master_ecs=MasterWorkerECS(model_worker).add_system(sft).build(),
            data_worker=[
                DataWorker(
                    tokenizer_name_or_path=path,
                    datasets=["prompt_answer", dataset],
                    stream="data",
                    use_dataset_cache=True,
                )
            ],
            model_worker=model_worker,
            eval_frequency_epochs=1,
        )


register_experiment("plot-sft", PlotSFTExperiment)
register_experiment("plot-sft-lora", functools.partial(PlotSFTExperiment, lora=dict(lora_dim=32, lora_scaling=2.0)))
