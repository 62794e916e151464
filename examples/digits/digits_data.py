"""Handwritten-like digits made by a small generator: strokes with jitter and noise, the same on every machine."""

import random
from itertools import pairwise

import numpy as np
import torch

SIZE = 16

# each digit as strokes between points of a 0..1 square, x to the right and y down
_STROKES = {
    0: [[(0.3, 0.1), (0.7, 0.1), (0.85, 0.5), (0.7, 0.9), (0.3, 0.9), (0.15, 0.5), (0.3, 0.1)]],
    1: [[(0.3, 0.3), (0.55, 0.1), (0.55, 0.9)]],
    2: [[(0.2, 0.3), (0.35, 0.1), (0.7, 0.1), (0.8, 0.35), (0.2, 0.9), (0.8, 0.9)]],
    3: [[(0.2, 0.1), (0.75, 0.1), (0.45, 0.45), (0.8, 0.65), (0.6, 0.9), (0.2, 0.85)]],
    4: [[(0.65, 0.9), (0.65, 0.1), (0.15, 0.65), (0.85, 0.65)]],
    5: [[(0.8, 0.1), (0.25, 0.1), (0.25, 0.45), (0.65, 0.45), (0.8, 0.7), (0.6, 0.9), (0.2, 0.85)]],
    6: [[(0.7, 0.1), (0.3, 0.4), (0.2, 0.7), (0.4, 0.9), (0.7, 0.85), (0.75, 0.6), (0.5, 0.5), (0.25, 0.65)]],
    7: [[(0.2, 0.1), (0.8, 0.1), (0.4, 0.9)], [(0.3, 0.5), (0.7, 0.5)]],
    8: [[(0.5, 0.1), (0.75, 0.25), (0.3, 0.65), (0.5, 0.9), (0.75, 0.7), (0.3, 0.3), (0.5, 0.1)]],
    9: [[(0.75, 0.35), (0.5, 0.5), (0.25, 0.35), (0.4, 0.1), (0.7, 0.15), (0.75, 0.5), (0.6, 0.9)]],
}


def make(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """``count`` images of SIZE × SIZE with values 0 to 1, and their labels."""
    draw = np.random.RandomState(seed)
    labels = draw.randint(0, 10, count)
    images = np.stack([_draw(int(label), draw) for label in labels]).astype(np.float32)
    return images, labels


def _draw(label: int, draw: np.random.RandomState) -> np.ndarray:
    points = []
    slant, scale = draw.normal(0, 0.25), draw.uniform(0.6, 1.0)
    for stroke in _STROKES[label]:
        corners = np.array(stroke) + draw.normal(0, 0.05, (len(stroke), 2))
        for begin, end in pairwise(corners):
            points.append(begin + np.linspace(0, 1, 12)[:, None] * (end - begin))
    path = np.concatenate(points) - 0.5
    path[:, 0] += slant * path[:, 1]
    path = path * scale + 0.5 + draw.normal(0, 0.05, 2)
    axis = (np.arange(SIZE) + 0.5) / SIZE
    # exp of sums stays the same on every machine far beyond the precision that float32 keeps
    x = np.exp(-(((axis[None, :] - path[:, 0:1]) / 0.05) ** 2))
    y = np.exp(-(((axis[None, :] - path[:, 1:2]) / 0.05) ** 2))
    image = np.minimum(1.0, np.einsum("py,px->yx", y, x) / 2)
    return np.clip(image + draw.normal(0, 0.2, image.shape), 0.0, 1.0)


class Digits(torch.utils.data.Dataset):
    """The images as tensors; for training each look at one is shifted, faded and sprinkled anew."""

    def __init__(self, count: int, seed: int, augment: bool) -> None:
        self.images, self.labels = make(count, seed)
        self.augment = augment

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image = self.images[index]
        if self.augment:
            image = np.roll(image, np.random.randint(-1, 2, 2), axis=(0, 1))
            image = image * np.float32(random.uniform(0.7, 1.0))
        tensor = torch.from_numpy(np.ascontiguousarray(image))[None]
        if self.augment:
            tensor = tensor + 0.05 * torch.randn(tensor.shape)
        return tensor, int(self.labels[index])
