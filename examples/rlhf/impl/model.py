"""The model with a value for each token, and the interfaces of warm-up and reward model; ``ppo`` has those of PPO."""

import os

import torch
import transformers
from api.model import Model, ModelInterface, register_interface, register_model
from api.utils import create_hf_nn, get_all_reduce_mean, load_hf_tokenizer, save_hf_format
from base.namedarray import from_dict

from impl import ppo, words

VALUE_HEAD = "value_head.pt"


class ValueModel(torch.nn.Module):
    """A transformer with one number for each token: the critic, and the reward model."""

    def __init__(self, model_name_or_path):
        super().__init__()
        self.transformer = create_hf_nn(transformers.AutoModel, model_name_or_path)
        self.value_head = torch.nn.Linear(self.transformer.config.hidden_size, 1, bias=False)
        file = os.path.join(model_name_or_path, VALUE_HEAD)
        if os.path.exists(file):
            self.value_head.load_state_dict(torch.load(file, weights_only=True))
        else:
            torch.nn.init.zeros_(self.value_head.weight)

    def forward(self, input_ids, attention_mask):
        hidden = self.transformer(**ppo.inputs(input_ids, attention_mask)).last_hidden_state
        return self.value_head(hidden)[..., 0]


def causal_value(name, device, model_name_or_path):
    """Makes a model with a value for each token from a folder of Hugging Face."""
    return Model(name, ValueModel(model_name_or_path), load_hf_tokenizer(model_name_or_path), device)


class Supervised(ModelInterface):
    """The warm-up: the next token of texts."""

    def train_step(self, model, data):
        model.module.train()
        loss = self.loss(model, data["input_ids"], data["attention_mask"])
        model.module.backward(loss)
        model.module.step()
        model.inc_version()
        return {"loss": get_all_reduce_mean(loss.detach())}

    @torch.no_grad()
    def evaluate(self, model, eval_dataloader):
        model.module.eval()
        losses = [self.loss(model, batch["input_ids"], batch["attention_mask"]) for batch in eval_dataloader]
        return {"loss": torch.stack(losses).mean()}

    def loss(self, model, input_ids, attention_mask):
        logits = model.module(**ppo.inputs(input_ids, attention_mask)).logits[:, :-1]
        labels = input_ids[:, 1:].masked_fill(~attention_mask[:, 1:].bool(), -100)
        return torch.nn.functional.cross_entropy(logits.transpose(1, 2), labels)

    def save(self, model, save_dir):
        save_hf_format(model.module, model.tokenizer, save_dir)


class PairedReward(ModelInterface):
    """The reward model: trained on pairs of texts, then asked for the scores of sequences."""

    def train_step(self, model, data):
        model.module.train()
        chosen, rejected = (
            ppo.last_values(model.module, data[f"{name}_input_ids"], data[f"{name}_attention_mask"])
            for name in ("chosen", "rejected")
        )
        loss = -torch.nn.functional.logsigmoid(chosen - rejected).mean()
        model.module.backward(loss)
        model.module.step()
        model.inc_version()
        return {"loss": loss.detach(), "accuracy": (chosen > rejected).float().mean()}

    @torch.no_grad()
    def inference(self, model, data):
        model.module.eval()
        return from_dict({"scores": ppo.last_values(model.module, data["seq"], data["attention_mask"])})

    def save(self, model, save_dir):
        ppo.save_value_model(model, save_dir, VALUE_HEAD)


class WordReward(ModelInterface):
    """The reward without a reward model: how pleasant the text is that the actor wrote."""

    def inference(self, model, data):
        answers = data["seq"][:, -words.ANSWER_WORDS :]
        texts = model.tokenizer.batch_decode(answers, skip_special_tokens=True)
        return from_dict({"scores": torch.tensor([words.score(text) for text in texts])})


register_model("causal_value", causal_value)
register_interface("supervised", Supervised)
register_interface("paired_reward", PairedReward)
register_interface("word_reward", WordReward)
