"""Prompts of random tokens, drawn from the seed alone."""

import torch
from api.data import DatasetUtility, get_shuffle_indices, register_dataset

from impl import faults

VOCABULARY, PROMPT = 12, 3


class Prompts(torch.utils.data.Dataset):
    def __init__(self, util: DatasetUtility, items: int = 32):
        draws = torch.Generator().manual_seed(util.seed)
        self.rank, self.reads = util.ddp_rank, 0
        own = [index for index in get_shuffle_indices(util.seed, items) if index % util.world_size == util.ddp_rank]
        self.prompts = torch.randint(VOCABULARY, (items, PROMPT), generator=draws)[own]

    def __len__(self):
        return len(self.prompts)

    def __getitem__(self, index):
        self.reads += 1
        faults.fail_at("data_worker", self.rank, "item", self.reads)
        return {"prompts": self.prompts[index]}


register_dataset("prompts", Prompts)
