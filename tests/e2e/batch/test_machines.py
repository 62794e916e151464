"""Jobs over nodes with addresses of their own: the real Lightning, and a node that dies."""

import os
import signal
import sys
from collections.abc import Iterator

import pytest
from tests.support.batch_project import BatchProject
from tests.support.machines import machines
from tests.support.slurm import Slurm, running_slurm
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.xdist_group("slurm machines"),
    pytest.mark.budget(180, "runs Lightning on a real Slurm of two machines"),
]
FIT = """\
import argparse
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--num_nodes", type=int)
parser.add_argument("--gpus", type=int)
given = parser.parse_args()


class Line(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch, number):
        return torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


pl.seed_everything(0)
x = torch.rand(16, 1)
trainer = pl.Trainer(
    accelerator="cpu", devices=given.gpus, num_nodes=given.num_nodes, max_steps=1, logger=False,
    enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
)
model = Line()
trainer.fit(model, DataLoader(TensorDataset(x, 3 * x), batch_size=4))
print("fitted", trainer.global_rank, "of", trainer.world_size, f"{model.layer.weight.item():.6f}", flush=True)
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Yields a Slurm whose two nodes have addresses and names of their own."""
    with machines(2, gateway=True) as nodes, running_slurm(tmp_path_factory.mktemp("s"), nodes, node_timeout=5) as one:
        yield one


@pytest.mark.torch
@pytest.mark.parametrize(
    "line",
    [f"srun {sys.executable} fit.py --num_nodes 2 --gpus 2", f"{sys.executable} fit.py"],
    ids=["srun", "plain"],
)
def test_lightnings_fit_ends_on_all_ranks_of_two_machines(project: BatchProject, line: str) -> None:
    (project.root / "fit.py").write_text(FIT)
    project.command(line)
    job = project.run(
        *("-j", "distributed", "-W", "lightning", "-N", "2", "-g", "2", "-c", "1"),
        *("--nodes-argument", "num_nodes"),
    )
    output = project.output(job)
    ends = sorted(words for words in output.splitlines() if words.startswith("fitted"))
    assert [words.split()[1] for words in ends] == ["0", "1", "2", "3"], output
    assert len({words.split()[-1] for words in ends}) == 1, ends
    assert project.state(job)["state"] == "COMPLETED"


def test_a_node_that_dies_is_named_and_the_job_can_be_retried(project: BatchProject) -> None:
    """Without --no-requeue Slurm itself starts the job anew on the other node."""
    project.command("python main.py; sleep 600")
    job = project.submit("-j", "standard", "--", "--no-requeue")
    wait_until(lambda: project.seen(job), what="the program runs")
    node = project.slurm.command("squeue", "--noheader", f"--jobs={job}", "--format=%N").strip()
    pid = int((project.slurm.folder / "run" / f"slurmd.{node}.pid").read_text())
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: project.state(job)["state"] == "NODE_FAIL", within=90, what="the job ends with its node")
    assert node in project.state(job)["detail"]
    done = project.det("retry", job)
    assert done.returncode == 0, done.stderr
    again = done.stdout.split()[-1]
    wait_until(lambda: project.seen(again), what="the program runs on the other node")
