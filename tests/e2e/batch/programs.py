"""Programs and command files of the jobs that run on three targets."""

STANDARD = """\
import os, sys
weight = 0.0
for step in range(1, 6):
    weight += 0.5 / step
print("result:", sys.argv[1:], weight, os.environ["NNODES"], os.environ["exp_name"], os.environ["project_name"])
"""
TORCH = """\
import torch, torch.distributed as dist
dist.init_process_group("gloo")
torch.manual_seed(0)
weight, rank = torch.zeros(3), dist.get_rank()
for step in range(5):
    gradient = torch.rand(3) * (rank + 1)
    dist.all_reduce(gradient)
    weight -= 0.1 * gradient
if rank == 0:
    print("result:", dist.get_world_size(), weight.tolist(), flush=True)
dist.destroy_process_group()
"""
ONE_NODE = """\
torchrun --nproc_per_node=${NUM_TRAINERS} --nnodes=1 \\
    --standalone
    reduce.py
"""
TWO_NODES = """\
torchrun --nproc_per_node=${NUM_TRAINERS} --nnodes=${NNODES} \\
    --rdzv_id=${JOBID} \\
    --rdzv_backend=c10d \\
    --rdzv_endpoint=${MASTER_ADDRESS}:${PORT} \\
    reduce.py
"""
RENDEZVOUS = """\
import os, sys
names = ("MASTER_ADDR", "MASTER_PORT", "MASTER_ADDRESS", "PORT")
values = [os.environ[name] for name in names]
assert values[:2] == values[2:] and values[1].isdigit(), values
print("result:", sys.argv[1:], *(os.environ[name] for name in ("WORLD_SIZE", "NODE_RANK", "NNODES", "NUM_TRAINERS")))
"""
LIGHTNING = """\
import argparse
import os
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
for name in ("--nnodes", "--gpus"):
    parser.add_argument(name, type=int)
args = parser.parse_args()

class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
    def training_step(self, batch, _):
        return self.layer(batch).sum()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

if __name__ == "__main__":
    pl.seed_everything(0)
    trainer = pl.Trainer(
        accelerator="cpu", strategy="ddp", num_nodes=args.nnodes, devices=args.gpus, max_steps=1, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )
    model = Model()
    trainer.fit(model, DataLoader(torch.ones(8, 2), batch_size=2))
    weights = [round(each, 4) for each in model.layer.weight.flatten().tolist()]
    line = f"result: {trainer.world_size} {trainer.global_step} {weights}"
    os.write(1, (line + chr(10)).encode())  # whole beside that of the other rank
"""
WANDB = '#!/bin/bash\necho "result: $*"\n'
CORE = """\
import json, os, pathlib, time
import determined
from determined import core

gate = pathlib.Path(os.environ["scratch_dir"])
info = determined.get_cluster_info()
with core.init() as context:
    begin, loss = 0, 1.0
    if info.latest_checkpoint:
        with context.checkpoint.restore_path(info.latest_checkpoint) as folder:
            begin, loss = json.loads((folder / "state.json").read_text())
    print("begins at", begin, flush=True)
    for step in range(begin + 1, 11):
        loss *= 0.9
        (gate / "at").write_text(str(step))
        while step == 5 and (gate / "hold").exists() and not context.preempt.should_preempt():
            time.sleep(0.02)
        context.train.report_validation_metrics(step, {"loss": loss})
        if context.preempt.should_preempt() or step == 10:
            with context.checkpoint.store_path({"steps_completed": step}) as (folder, _):
                (folder / "state.json").write_text(json.dumps([step, loss]))
            if step < 10:
                raise SystemExit
print("result:", step, loss, flush=True)
"""
PLAIN = """\
import os, pathlib, time
gate = pathlib.Path(os.environ["scratch_dir"])
print("starts", flush=True)
(gate / "at").write_text("5")
while (gate / "hold").exists():
    time.sleep(0.02)
print("result: ended", flush=True)
"""
