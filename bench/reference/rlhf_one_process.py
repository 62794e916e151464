"""PPO of ``examples/rlhf`` without workers: the same functions, models, interfaces and backends in one process.

``make FOLDER`` writes the model; ``run FILE`` writes the seconds of each step as JSON.
"""

import json
import os
import sys
import time
from concurrent.futures import Future
from pathlib import Path

import torch
import transformers

from determined_workflows.rlhf.task import data_worker, process_setup, random_states, run_worker
from determined_workflows.rlhf.task.config import make_experiment
from determined_workflows.rlhf.task.data import DatasetUtility
from determined_workflows.rlhf.task.language_models import load_hf_tokenizer
from determined_workflows.rlhf.task.model import FinetuneSpec, make_backend, make_interface, make_model
from determined_workflows.rlhf.task.named_array import from_dict


def make(folder):
    from make_model import make as make_base

    make_base(folder)
    config = transformers.GPT2Config.from_pretrained(folder)
    config.n_embd, config.n_layer = int(os.environ["BENCH_WIDTH"]), int(os.environ["BENCH_LAYERS"])
    torch.manual_seed(1)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)


def run(file):
    run_worker.load("bench-ppo", "bench", {})
    config = make_experiment("bench-ppo").initial_setup()
    data = config.data_worker[0]
    tokenizer = load_hf_tokenizer(data.tokenizer_name_or_path)
    loader = data_worker.make_loader(data.datasets, data.dataloader, DatasetUtility(data.seed, 0, 1, tokenizer), None)
    spec = FinetuneSpec(1, len(loader), len(loader), data_worker.batch_size(loader))
    models, interfaces = {}, {}
    with process_setup.process_group(torch.device("cpu"), {}):
        for worker in config.model_worker:
            random_states.seed_all(worker.seed)
            model = make_model(worker.model, worker.model_name, "cpu")
            models[worker.model_name] = make_backend(worker.backend).initialize(model, spec)
            interfaces[worker.model_name] = make_interface(worker.interface)

        def call(name, handle, inputs):
            future = Future()
            future.set_result(getattr(interfaces[name], handle)(models[name], inputs))
            return future

        dataflow, seconds = config.master_worker[0].leveled_exec_funcs, []
        for batch in loader:
            begin = time.monotonic()
            in_order(dataflow, from_dict(batch), call)
            seconds.append(time.monotonic() - begin)
    Path(file).write_text(json.dumps(seconds))


def in_order(dataflow, batch, call):
    """Runs the functions one after another, as a program without workers would."""
    from determined_workflows.rlhf.task.queries import Commands, DataQuery, ModelQuery

    stored = {}

    class Store:
        get, set = stored.__getitem__, stored.__setitem__

        def log(self, values):
            pass

    for level in dataflow.levels:
        for name in level:
            arguments = {}
            for parameter, (kind, query) in dataflow.needs[name].arguments.items():
                if kind is Commands:
                    arguments[parameter] = Commands(Store())
                elif kind is ModelQuery:
                    arguments[parameter] = ModelQuery(query, call)
                else:
                    arguments[parameter] = stored[query] if kind is DataQuery else batch[query]
            dataflow.funcs[name](**arguments)


if __name__ == "__main__":
    {"make": make, "run": run}[sys.argv[1]](sys.argv[2])
