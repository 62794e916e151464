"""A language model of two layers and the interfaces of PPO, small enough for eight steps in a second."""

import hashlib
import os
import time

import torch
from api.model import Model, ModelInterface, register_interface, register_model
from api.utils import unwrapped
from base.namedarray import from_dict

from impl import faults
from impl.data import PROMPT, VOCABULARY

RESPONSE = 4


class TinyNet(torch.nn.Module):
    def __init__(self, outputs: int):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, 16)
        self.mixing = torch.nn.GRU(16, 16, batch_first=True)
        self.dropout = torch.nn.Dropout(0.1)
        self.head = torch.nn.Linear(16, outputs)

    def forward(self, tokens):
        hidden, _ = self.mixing(self.embedding(tokens))
        return self.head(self.dropout(hidden))


def tiny_lm(name, device):
    return Model(name, TinyNet(VOCABULARY), None, device)


def tiny_value(name, device):
    return Model(name, TinyNet(1), None, device)


def observe(model, handle, data):
    """Notes the batch of a call, and fails if the test asks for it."""
    rank, step = torch.distributed.get_rank(), model.version.global_step
    digest = hashlib.sha256(b"".join(value.numpy().tobytes() for value in data.values())).hexdigest()
    with open(f"{os.environ['TRACE']}/{model.name}-{rank}", "a") as trace:
        trace.write(f"{handle}:{step} {digest}\n")
    time.sleep(float(os.environ.get("PACE", "0")))
    faults.fail_at(model.name, rank, handle, step)


def save_weights(model, save_dir):
    torch.save(unwrapped(model.module).state_dict(), os.path.join(save_dir, "weights.pt"))


def logprobs(logits, tokens):
    return torch.log_softmax(logits[:, :-1], -1).gather(-1, tokens[:, 1:, None])[..., 0][:, PROMPT - 1 :]


class Actor(ModelInterface):
    @torch.no_grad()
    def generate(self, model, data):
        observe(model, "generate", data)
        model.module.eval()
        tokens = data["prompts"]
        for _ in range(RESPONSE):
            logits = model.module(tokens)[:, -1]
            tokens = torch.cat([tokens, torch.multinomial(torch.softmax(logits, -1), 1)], 1)
        return from_dict({"seq": tokens, "logp": logprobs(model.module(tokens), tokens)})

    @torch.no_grad()
    def inference(self, model, data):
        observe(model, "inference", data)
        model.module.eval()
        return from_dict({"logp": logprobs(model.module(data["seq"]), data["seq"])})

    def train_step(self, model, data):
        observe(model, "train_step", data)
        model.module.train()
        logp = logprobs(model.module(data["seq"]), data["seq"])
        ratio = torch.exp(logp - data["logp"])
        advantages = data["advantages"][:, None]
        loss = -torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
        model.module.backward(loss)
        model.module.step()
        model.inc_version()
        return {"loss": loss.detach()}

    def save(self, model, save_dir):
        save_weights(model, save_dir)


class Critic(ModelInterface):
    def save(self, model, save_dir):
        save_weights(model, save_dir)

    @torch.no_grad()
    def inference(self, model, data):
        observe(model, "inference", data)
        model.module.eval()
        return from_dict({"values": model.module(data["seq"])[:, -1, 0]})

    def train_step(self, model, data):
        observe(model, "train_step", data)
        model.module.train()
        loss = ((model.module(data["seq"])[:, -1, 0] - data["returns"]) ** 2).mean()
        model.module.backward(loss)
        model.module.step()
        return {"loss": loss.detach().item()}


class Reward(ModelInterface):
    """The part of even tokens among the generated ones."""

    def inference(self, model, data):
        observe(model, "inference", data)
        return from_dict({"scores": (data["seq"][:, PROMPT:] % 2 == 0).float().mean(1)})


register_model("tiny_lm", tiny_lm)
register_model("tiny_value", tiny_value)
register_interface("tiny_actor", Actor)
register_interface("tiny_critic", Critic)
register_interface("tiny_reward", Reward)
