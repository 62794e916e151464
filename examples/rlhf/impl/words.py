"""The synthetic task: sentences of 32 words. Pleasant words are preferred, unpleasant ones are not."""

import torch

PLEASANT = ("sun", "song", "friend", "garden", "laugh", "honey", "gift", "spring")
UNPLEASANT = ("mud", "noise", "thief", "ruin", "tears", "poison", "debt", "storm")
PLAIN = (
    "a",
    "the",
    "and",
    "then",
    "here",
    "there",
    "one",
    "two",
    "we",
    "you",
    "they",
    "saw",
    "found",
    "made",
    "had",
    "met",
)
WORDS = PLEASANT + UNPLEASANT + PLAIN
PROMPT_WORDS, ANSWER_WORDS = 4, 8


def sentence(words, count, draws):
    """Returns ``count`` words, drawn from a torch.Generator."""
    return " ".join(words[int(index)] for index in torch.randint(len(words), (count,), generator=draws))


def score(text):
    """Returns how pleasant a text is, from -1 to 1: pleasant words less unpleasant ones, as a part of all."""
    words = text.split()
    return (sum(word in PLEASANT for word in words) - sum(word in UNPLEASANT for word in words)) / max(1, len(words))
