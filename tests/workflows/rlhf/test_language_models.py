"""Models and tokenizers of Hugging Face from a local folder, adapters, and the form in which they are saved."""

import importlib.util
from pathlib import Path

import pytest
import torch

from determined_workflows.rlhf.task import language_models, lora
from determined_workflows.rlhf.task.model import make_model

pytestmark = pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="needs transformers")


class Config:
    def __init__(self, type_: str, **args: object) -> None:
        self.type_, self.args = type_, args


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder = tmp_path_factory.mktemp("model")
    tokenizer = Tokenizer(models.WordLevel({"<eos>": 0, "a": 1, "b": 2}, unk_token="<eos>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>").save_pretrained(folder)
    config = transformers.GPT2Config(
        vocab_size=3, n_positions=8, n_embd=8, n_layer=1, n_head=1, bos_token_id=0, eos_token_id=0
    )
    torch.manual_seed(1)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


def ids() -> torch.Tensor:
    return torch.tensor([[1, 2, 1]])


def test_a_causal_model_is_made_from_a_folder_without_dropout(folder: Path) -> None:
    model = make_model(Config("causal_lm", model_name_or_path=str(folder)), "actor", "cpu")
    assert model.name == "actor"
    assert model.tokenizer.pad_token == "<eos>"
    model.module.train()
    assert torch.equal(model.module(ids()).logits, model.module(ids()).logits)


def test_a_model_from_scratch_has_other_weights(folder: Path) -> None:
    stored = make_model(Config("causal_lm", model_name_or_path=str(folder)), "actor", "cpu")
    torch.manual_seed(2)
    fresh = make_model(Config("causal_lm", model_name_or_path=str(folder), init_from_scratch=True), "actor", "cpu")
    assert not torch.equal(stored.module.transformer.wte.weight, fresh.module.transformer.wte.weight)


def test_a_folder_that_does_not_exist_is_named() -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no folder \./nowhere"):
        language_models.load_hf_tokenizer("./nowhere")


def test_adapters_change_nothing_at_first_and_are_all_that_is_trained(folder: Path) -> None:
    plain = make_model(Config("causal_lm", model_name_or_path=str(folder)), "actor", "cpu")
    adapted = make_model(Config("causal_lm_lora", model_name_or_path=str(folder), lora_dim=2), "actor", "cpu")
    assert torch.equal(plain.module(ids()).logits, adapted.module(ids()).logits)
    trained = {name.rsplit(".", 1)[-1] for name, value in adapted.module.named_parameters() if value.requires_grad}
    assert trained == {"lora_down", "lora_up"}


def test_saved_adapters_are_merged_into_the_weights(folder: Path, tmp_path: Path) -> None:
    adapted = make_model(Config("causal_lm_lora", model_name_or_path=str(folder), lora_dim=2), "actor", "cpu")
    with torch.no_grad():
        for name, value in adapted.module.named_parameters():
            if "lora" in name:
                value.normal_()
    language_models.save_hf_format(adapted.module, adapted.tokenizer, tmp_path)
    loaded = make_model(Config("causal_lm", model_name_or_path=str(tmp_path)), "actor", "cpu")
    torch.testing.assert_close(loaded.module(ids()).logits, adapted.module(ids()).logits)


@pytest.mark.parametrize(
    ("word", "rank", "text"), [("nowhere", 2, "'nowhere'.*; there are"), ("", 0, "at least 1, not 0")]
)
def test_adapters_that_fit_nowhere_are_refused(word: str, rank: int, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        lora.add_adapters(torch.nn.Sequential(torch.nn.Linear(2, 2)), word, rank, 1.0, only_adapters=True)


def test_adapters_of_a_linear_layer_are_merged_as_well() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 2))
    lora.add_adapters(module, "0", 1, 0.5, only_adapters=True)
    torch.nn.init.normal_(module[0].lora_up)
    plain = torch.nn.Sequential(torch.nn.Linear(3, 2))
    plain.load_state_dict(lora.merged_state_dict(module))
    inputs = torch.rand(4, 3)
    torch.testing.assert_close(plain(inputs), module(inputs))


def test_the_mean_over_one_replica_is_the_value() -> None:
    assert language_models.get_all_reduce_mean(torch.tensor(2.0)).item() == 2.0
