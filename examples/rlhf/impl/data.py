"""Datasets of the three experiments. Each data worker takes the items of its rank."""

import torch
from api.data import DatasetUtility, get_shuffle_indices, register_dataset

from impl import words


class OwnItems(torch.utils.data.Dataset):
    """Items of this worker: all are drawn from the seed, and every ``world_size``-th is kept."""

    def __init__(self, util: DatasetUtility, items: int):
        self.util = util
        self.draws = torch.Generator().manual_seed(util.seed)
        made = [self.make() for _ in range(items)]
        order = get_shuffle_indices(util.seed, items)
        self.items = [made[index] for index in order[util.ddp_rank :: util.world_size]]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]

    def encoded(self, text, words_of_text, name=""):
        """Returns token ids and mask of a text, padded to a length that is the same for all items."""
        made = self.util.tokenizer(
            text, padding="max_length", max_length=2 * words_of_text, truncation=True, return_tensors="pt"
        )
        return {f"{name}input_ids": made["input_ids"][0], f"{name}attention_mask": made["attention_mask"][0].bool()}


class Texts(OwnItems):
    """Texts for the supervised warm-up: words in pairs, so that there is something to learn."""

    def __init__(self, util: DatasetUtility, items: int = 2048):
        super().__init__(util, items)

    def make(self):
        count = words.PROMPT_WORDS + words.ANSWER_WORDS
        pairs = [f"{word} {word}" for word in words.sentence(words.WORDS, count // 2, self.draws).split()]
        return self.encoded(" ".join(pairs), count)


class Preferences(OwnItems):
    """Pairs of answers of which the first is more pleasant."""

    def __init__(self, util: DatasetUtility, items: int = 2048):
        super().__init__(util, items)

    def make(self):
        count = words.PROMPT_WORDS + words.ANSWER_WORDS
        texts = sorted((words.sentence(words.WORDS, count, self.draws) for _ in range(2)), key=words.score)
        return {**self.encoded(texts[1], count, "chosen_"), **self.encoded(texts[0], count, "rejected_")}


class Prompts(OwnItems):
    """Prompts of plain words for PPO."""

    def __init__(self, util: DatasetUtility, items: int = 1024):
        super().__init__(util, items)

    def make(self):
        return self.encoded(words.sentence(words.PLAIN, words.PROMPT_WORDS, self.draws), words.PROMPT_WORDS, "prompt_")


register_dataset("texts", Texts)
register_dataset("preferences", Preferences)
register_dataset("prompts", Prompts)
