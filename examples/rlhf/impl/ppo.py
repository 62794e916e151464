"""PPO: the interfaces of actor, reference and critic, and the computations that they share."""

import os

import torch
from api.model import ModelInterface, register_interface
from api.utils import save_hf_format, unwrapped
from base.namedarray import from_dict, split

from impl import words

CLIP = 0.2
DISCOUNT, TRACE = 1.0, 0.95


def inputs(seq, attention_mask):
    """Returns the arguments of a model for sequences that are padded on the left: positions begin after the padding."""
    positions = attention_mask.long().cumsum(1).sub(1).clamp(min=0)
    return {"input_ids": seq, "attention_mask": attention_mask.long(), "position_ids": positions}


def answer_logprobs(module, seq, attention_mask):
    """Returns the log-probability of each token that the actor wrote. It never ends an answer early."""
    logits = module(**inputs(seq, attention_mask)).logits[:, -words.ANSWER_WORDS - 1 : -1]
    never = torch.zeros(logits.shape[-1], dtype=torch.bool, device=logits.device)
    never[unwrapped(module).config.eos_token_id] = True
    logits = logits.masked_fill(never, -torch.inf)
    return torch.log_softmax(logits, -1).gather(-1, seq[:, -words.ANSWER_WORDS :, None])[..., 0]


def answer_values(module, seq, attention_mask):
    """Returns the critic's value before each token that the actor wrote."""
    return module(seq, attention_mask)[:, -words.ANSWER_WORDS - 1 : -1]


def last_values(module, seq, attention_mask):
    """Returns the value of each sequence's last token; sequences are padded on the left."""
    return module(seq, attention_mask)[:, -1]


def advantages_and_returns(rewards, values):
    """Returns generalized advantages and returns for rewards and values of shape (batch, tokens)."""
    advantages, last = torch.zeros_like(values), torch.zeros(len(values))
    for token in reversed(range(values.shape[1])):
        following = values[:, token + 1] if token + 1 < values.shape[1] else torch.zeros(len(values))
        last = rewards[:, token] + DISCOUNT * following - values[:, token] + DISCOUNT * TRACE * last
        advantages[:, token] = last
    return advantages, advantages + values


def save_value_model(model, save_dir, value_head):
    """Writes a model with values: its transformer in the form of Hugging Face, and its head beside it."""
    module = unwrapped(model.module)
    save_hf_format(module.transformer, model.tokenizer, save_dir)
    torch.save(module.value_head.state_dict(), os.path.join(save_dir, value_head))


class Actor(ModelInterface):
    """The policy; with an inference backend also the reference."""

    def __init__(self, minibatches: int = 2, temperature: float = 1.0):
        self.minibatches = minibatches
        self.temperature = temperature

    @torch.no_grad()
    def generate(self, model, data):
        model.module.eval()
        module = unwrapped(model.module)
        seq = module.generate(
            input_ids=data["input_ids"],
            attention_mask=data["attention_mask"].long(),
            do_sample=True,
            top_k=0,
            temperature=self.temperature,
            min_new_tokens=words.ANSWER_WORDS,
            max_new_tokens=words.ANSWER_WORDS,
            pad_token_id=model.tokenizer.pad_token_id,
        )
        written = torch.ones(len(seq), words.ANSWER_WORDS, dtype=torch.bool)
        mask = torch.cat([data["attention_mask"].bool(), written.to(seq.device)], 1)
        return from_dict({"seq": seq, "attention_mask": mask, "logprobs": answer_logprobs(module, seq, mask)})

    @torch.no_grad()
    def inference(self, model, data):
        model.module.eval()
        return from_dict({"logprobs": answer_logprobs(model.module, data["seq"], data["attention_mask"])})

    def train_step(self, model, data):
        model.module.train()
        losses = []
        for part in split(data, self.minibatches):
            logprobs = answer_logprobs(model.module, part["seq"], part["attention_mask"])
            ratio = torch.exp(logprobs - part["logprobs"])
            advantages = part["advantages"]
            loss = -torch.min(ratio * advantages, ratio.clamp(1 - CLIP, 1 + CLIP) * advantages).mean()
            model.module.backward(loss)
            model.module.step()
            losses.append(loss.detach())
        model.inc_version()
        return {"loss": torch.stack(losses).mean()}

    def save(self, model, save_dir):
        save_hf_format(model.module, model.tokenizer, save_dir)


class Critic(ModelInterface):
    """The values by which the actor's advantages are computed."""

    def __init__(self, minibatches: int = 2):
        self.minibatches = minibatches

    @torch.no_grad()
    def inference(self, model, data):
        model.module.eval()
        return from_dict({"values": answer_values(model.module, data["seq"], data["attention_mask"])})

    def train_step(self, model, data):
        model.module.train()
        losses = []
        for part in split(data, self.minibatches):
            values = answer_values(model.module, part["seq"], part["attention_mask"])
            loss = ((values - part["returns"]) ** 2).mean()
            model.module.backward(loss)
            model.module.step()
            losses.append(loss.detach())
        model.inc_version()
        return {"loss": torch.stack(losses).mean()}


register_interface("ppo_actor", Actor)
register_interface("ppo_critic", Critic)
