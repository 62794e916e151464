"""Writes a small GPT-2 with random weights and a tokenizer of the task's words: ``python3 make_model.py [FOLDER]``."""

import sys
from pathlib import Path

import torch
import transformers
from impl.words import WORDS
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

MARKS = ("<pad>", "<eos>", "<unk>")


def make(folder):
    """Writes the model into a folder in the form of Hugging Face; nothing if it is there already."""
    if (Path(folder) / "config.json").exists():
        return
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(MARKS + WORDS)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
    )
    config = transformers.GPT2Config(
        vocab_size=len(MARKS + WORDS),
        n_positions=64,
        n_embd=64,
        n_layer=2,
        n_head=2,
        bos_token_id=1,
        eos_token_id=1,
        pad_token_id=0,
    )
    torch.manual_seed(1)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    fast.save_pretrained(folder)


if __name__ == "__main__":
    make(sys.argv[1] if len(sys.argv) > 1 else "models/base")
