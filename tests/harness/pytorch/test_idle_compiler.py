"""The idle compiler of the tests' training processes: torch loads its compiler only when it is used."""

import subprocess
import sys

import pytest
from tests.support.compiler import IDLE_COMPILER

pytestmark = [pytest.mark.torch, pytest.mark.budget(15, "loads torch's compiler")]
STEP = """
import sys, torch
weight = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([weight], lr=0.5)
def step():
    optimizer.zero_grad()
    (weight ** 2).sum().backward()
    optimizer.step()
"""
COMPILES = """import sitecustomize
double = sitecustomize.Delayed(torch.compile, (), {"backend": "eager", "fullgraph": True})(lambda x: 2 * x)
before = 'torch._dynamo.convert_frame' in sys.modules
print(before, double(torch.ones(1)).item(), 'torch._dynamo.convert_frame' in sys.modules)"""
RANK = """step()
import torch.distributed as dist
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
model(torch.ones(1, 2)).sum().backward()
dist.destroy_process_group()
"""
TRAINS = "print(weight.tolist(), model.module.bias.grad.item(), 'torch._dynamo.convert_frame' in sys.modules)"
USES_PARTS = """import torch._dynamo.external_utils as external
before = external.is_compiling()
print(before, torch._dynamo.utils.counters, torch._dynamo.utils.get_optimize_ddp_mode())
print(sys.modules["torch._dynamo.external_utils"].is_compiling.__module__)"""
DETERMINISTIC = """torch.use_deterministic_algorithms(True, warn_only=True)
import torch._inductor.config as config
before = "torch._inductor.standalone_compile" in sys.modules
print(torch.are_deterministic_algorithms_enabled(), config.deterministic, before)"""
USES_BACKEND = """
print(torch._inductor.compile.__module__, 'torch._dynamo.convert_frame' in sys.modules, torch._inductor.config is config)"""
IMPORTS_PART = "step(); import torch._dynamo.config as c; print(c.__name__, torch._dynamo.config is c)"


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        (DETERMINISTIC, "True True False"),
        pytest.param(
            DETERMINISTIC + USES_BACKEND, "True True False\ntorch._inductor True True", marks=pytest.mark.long
        ),
        pytest.param(IMPORTS_PART, "torch._dynamo.config True", marks=pytest.mark.long),
        (RANK + TRAINS, "[0.0, 0.0] 1.0 False"),
        pytest.param(RANK + COMPILES, "False 2.0 True", marks=pytest.mark.long),  # takes seconds
        pytest.param(
            RANK + USES_PARTS,
            "False defaultdict(<class 'collections.Counter'>, {}) ddp_optimizer\ntorch._dynamo.external_utils",
            marks=pytest.mark.long,  # the line above loads the compiler too
        ),
    ],
)
def test_the_compiler_is_loaded_only_when_it_is_used(code: str, printed: str) -> None:
    environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(IDLE_COMPILER)}
    done = subprocess.run([sys.executable, "-c", STEP + code], env=environ, capture_output=True, text=True, timeout=360)
    assert (done.stdout.strip(), done.stderr) == (printed, "")
