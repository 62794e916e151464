"""One run, from the composed configuration to its result."""

import os
from pathlib import Path

import torch
from omegaconf import DictConfig

from mlstm.config_checks import checked
from mlstm.data import load_samples
from mlstm.devices import find_place, run_on_each
from mlstm.errors import ConfigError
from mlstm.run_folder import prepare_folder
from mlstm.trainer import count_steps, train

PROJECT = Path(__file__).parent.parent


def run(cfg: DictConfig) -> float | None:
    """Trains in the current folder, as ``cfg`` says, and returns the final loss; None if it is not known here."""
    config = checked(cfg)
    if config.device == "gpu" and not torch.cuda.is_available():
        raise ConfigError("device: gpu was asked for, but torch finds none on this machine")
    run_folder = Path.cwd()
    place = find_place(config.parallel, run_folder, os.environ)
    resume_from = prepare_folder(config, run_folder)
    samples = load_samples(config, PROJECT)
    if place is not None:
        return train(place, config, samples, run_folder, resume_from)
    assert config.parallel.devices is not None
    count_steps(config, samples, config.parallel.devices)  # before processes are started
    return run_on_each(train, config.parallel.devices, config, samples, run_folder, resume_from)
