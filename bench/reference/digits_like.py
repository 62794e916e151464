"""Pictures of 8x8 pixels in ten classes, drawn from a seed, in the number of the well-known digits data set."""

import torch

ROWS, PIXELS, CLASSES = 1797, 64, 10


def dataset() -> torch.utils.data.TensorDataset:
    """Returns pictures in which each class is a pattern with noise."""
    generator = torch.Generator().manual_seed(20)
    patterns = torch.rand(CLASSES, PIXELS, generator=generator)
    labels = torch.randint(CLASSES, (ROWS,), generator=generator)
    noise = 0.2 * torch.randn(ROWS, PIXELS, generator=generator)
    return torch.utils.data.TensorDataset((patterns[labels] + noise).clamp(0, 1), labels)


def network() -> torch.nn.Sequential:
    return torch.nn.Sequential(torch.nn.Linear(PIXELS, 128), torch.nn.ReLU(), torch.nn.Linear(128, CLASSES))
