"""Datasets that the experiment files of 2023 name; the numbers of tokens follow from the index."""

import torch
from api.data import register_dataset

ITEMS, LENGTH, WORDS = 16, 6, 30


class Texts(torch.utils.data.Dataset):
    def __init__(self, util, dataset_path="none", max_seq_len=LENGTH, ids="input_ids", mask="attention_mask"):
        self.numbers = range(util.ddp_rank, ITEMS, util.world_size)
        self.names = (ids, mask)

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, index):
        ids = 3 + (self.numbers[index] + torch.arange(LENGTH)) % WORDS
        return {self.names[0]: ids, self.names[1]: torch.ones(LENGTH, dtype=torch.bool)}


def prompts(util, **args):
    return Texts(util, ids="prompts", mask="prompt_att_mask", **args)


register_dataset("prompt_answer", Texts)
register_dataset("plot_prompt", prompts)
