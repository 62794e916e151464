"""Samples of ``context_length + 1`` tokens: made by a rule, or read from a text."""

from dataclasses import dataclass
from pathlib import Path

import torch

from mlstm.config_schema import Config, SyntheticConfig, TextConfig
from mlstm.errors import ConfigError


@dataclass(frozen=True)
class Samples:
    """Both parts are ``(samples, context_length + 1)`` tensors of tokens."""

    training: torch.Tensor
    validation: torch.Tensor

    def batch(self, step: int, *, seed: int, rank: int, world_size: int, per_device: int, parts: int) -> torch.Tensor:
        """Returns the samples of one process at a step, ``(parts, per_device, context_length + 1)``.

        They follow from the number of the step, so that a resumed run needs no memory of what it has seen.
        """
        each_step = world_size * per_device * parts
        epoch, place = divmod(step, len(self.training) // each_step)
        order = torch.randperm(len(self.training), generator=torch.Generator().manual_seed(seed * 1_000_003 + epoch))
        rows = order[place * each_step : (place + 1) * each_step].view(parts, world_size, per_device)
        return self.training[rows[:, rank]]


def load_samples(config: Config, project: Path) -> Samples:
    """Returns the samples that ``config.data`` describes.

    Raises:
        ConfigError: the text is missing, too short, or has tokens beyond the vocabulary.
    """
    length = config.context_length + 1
    if isinstance(config.data, SyntheticConfig):
        count = config.data.num_train_samples
        samples = _follow_rule(config.data, count + config.data.num_validation_samples, length, config.seed)
        return Samples(samples[:count], samples[count:])
    assert isinstance(config.data, TextConfig)
    path = project / config.data.path
    if not path.is_file():
        raise ConfigError(f"data.path: there is no file {path}")
    text = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8).long()
    if int(text.max()) >= config.data.vocab_size:
        raise ConfigError(f"data.vocab_size: {path} has the byte {int(text.max())}, so at least {int(text.max()) + 1}")
    samples = text[: len(text) // length * length].view(-1, length)
    held_out = round(len(samples) * config.data.validation_share)
    if not 0 < held_out < len(samples):
        raise ConfigError(f"data.validation_share: it holds out {held_out} of the {len(samples)} samples in {path}")
    return Samples(samples[:-held_out], samples[-held_out:])


def _follow_rule(config: SyntheticConfig, count: int, length: int, seed: int) -> torch.Tensor:
    """Each token has one successor, except for a share of noise."""
    draw = torch.Generator().manual_seed(seed)
    successor = torch.randperm(config.vocab_size, generator=draw)
    random = torch.randint(config.vocab_size, (count, length), generator=draw)
    is_noise = torch.rand(count, length, generator=draw) < config.noise
    columns = [random[:, 0]]
    for time in range(1, length):
        columns.append(torch.where(is_noise[:, time], random[:, time], successor[columns[-1]]))
    return torch.stack(columns, dim=1)
