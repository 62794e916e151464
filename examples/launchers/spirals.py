"""Three spirals of points, made by a generator, and a small network that tells them apart."""

import hashlib

import torch
from torch import nn

ARMS = 3
DEFAULTS = {"global_batch_size": 32, "learning_rate": 0.05, "hidden": 32, "dropout": 0.2, "batches": 40}


def points(count: int, seed: int) -> torch.utils.data.TensorDataset:
    """``count`` points of the plane and the number of the arm that each lies on."""
    draw = torch.Generator().manual_seed(seed)
    arm = torch.randint(ARMS, (count,), generator=draw)
    radius = torch.rand(count, generator=draw)
    angle = 4 * radius + 2 * torch.pi / ARMS * arm + 0.2 * torch.randn(count, generator=draw)
    return torch.utils.data.TensorDataset(torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1), arm)


def network(hidden: int, dropout: float) -> nn.Module:
    """Batch norm has buffers and dropout draws: both would show a resume that forgets something."""
    return nn.Sequential(
        nn.Linear(2, hidden),
        nn.BatchNorm1d(hidden),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, ARMS),
    )


def fingerprint(model: nn.Module) -> str:
    """A hash over the bytes of all parameters: equal lines, equal weights."""
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
