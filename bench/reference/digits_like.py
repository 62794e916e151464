"""Pictures of 8x8 in ten classes, as many as the well-known set of digits has, drawn from a seed."""

import torch

ROWS, PIXELS, CLASSES = 1797, 64, 10


def dataset() -> torch.utils.data.TensorDataset:
    """Each class is a pattern of its own under noise."""
    generator = torch.Generator().manual_seed(20)
    patterns = torch.rand(CLASSES, PIXELS, generator=generator)
    labels = torch.randint(CLASSES, (ROWS,), generator=generator)
    noise = 0.2 * torch.randn(ROWS, PIXELS, generator=generator)
    return torch.utils.data.TensorDataset((patterns[labels] + noise).clamp(0, 1), labels)


def network() -> torch.nn.Sequential:
    return torch.nn.Sequential(torch.nn.Linear(PIXELS, 128), torch.nn.ReLU(), torch.nn.Linear(128, CLASSES))
