"""Models and interfaces that the experiment files of 2023 name, in the style of that time."""

import torch
import transformers
from api.model import Model, ModelInterface, register_interface, register_model
from api.utils import create_hf_nn, get_all_reduce_mean, load_hf_tokenizer, save_hf_format
from base.namedarray import from_dict

ANSWER = 4


class Scorer(torch.nn.Module):
    def __init__(self, path):
        super().__init__()
        self.transformer = create_hf_nn(transformers.AutoModel, path)
        self.head = torch.nn.Linear(self.transformer.config.hidden_size, 1)

    def forward(self, input_ids, attention_mask=None):
        hidden = self.transformer(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return self.head(hidden)[:, -1, 0]


def plot_reward(name, device, model_name_or_path, head):
    return Model(name, Scorer(model_name_or_path), load_hf_tokenizer(model_name_or_path), device)


def logprobs(module, ids):
    logits = module(input_ids=ids).logits[:, -ANSWER - 1 : -1]
    return torch.log_softmax(logits.float(), -1).gather(-1, ids[:, -ANSWER:, None])[..., 0]


class Sft(ModelInterface):
    def train_step(self, model, data):
        module = model.module
        module.train()
        loss = self.loss(module, data)
        module.backward(loss)
        module.step()
        model.inc_version()
        return {"loss": get_all_reduce_mean(loss.detach()).item()}

    @torch.no_grad()
    def evaluate(self, model, eval_dataloader):
        model.module.eval()
        losses = [self.loss(model.module, batch) for batch in eval_dataloader]
        return {"loss": torch.stack(losses).mean().item()}

    def loss(self, module, data):
        logits = module(input_ids=data["input_ids"], attention_mask=data["attention_mask"]).logits[:, :-1]
        return torch.nn.functional.cross_entropy(logits.transpose(1, 2), data["input_ids"][:, 1:])

    def save(self, model, save_dir):
        save_hf_format(model.module, model.tokenizer, save_dir)


class Actor(ModelInterface):
    def __init__(self, n_minibatches=1, kl_ctl=0.1, discount=1.0, gae_lambda=1.0, eps_clip=0.2):
        self.kl_ctl, self.eps_clip = kl_ctl, eps_clip

    @torch.no_grad()
    def generate(self, model, data):
        module = getattr(model.module, "module", model.module)
        module.eval()
        seq = module.generate(
            input_ids=data["prompts"],
            attention_mask=data["prompt_att_mask"].long(),
            max_new_tokens=ANSWER,
            min_new_tokens=ANSWER,
            do_sample=True,
            pad_token_id=model.tokenizer.pad_token_id,
        )
        mask = torch.ones_like(seq, dtype=torch.bool)
        logits_mask = torch.zeros(len(seq), ANSWER, 8, dtype=torch.bool)
        return from_dict(
            {"seq": seq, "attention_mask": mask, "logp": logprobs(module, seq), "logits_ignoring_mask": logits_mask}
        )

    @torch.no_grad()
    def inference(self, model, data):
        return from_dict({"logp": logprobs(model.module, data["input_ids"])})

    def train_step(self, model, data):
        model.module.train()
        rewards = data["rewards"] - self.kl_ctl * (data["logp"] - data["ref_logp"]).sum(1)
        ratio = torch.exp(logprobs(model.module, data["input_ids"]) - data["logp"])
        advantage = (rewards - data["values"])[:, None]
        clipped = ratio.clamp(1 - self.eps_clip, 1 + self.eps_clip)
        loss = -torch.minimum(ratio * advantage, clipped * advantage).mean()
        model.module.backward(loss)
        model.module.step()
        model.inc_version()
        return {"actor_loss": loss.item()}


class Critic(ModelInterface):
    def __init__(self, **_):
        pass

    @torch.no_grad()
    def inference(self, model, data):
        return from_dict({"scores": model.module(data["input_ids"])})

    def train_step(self, model, data):
        model.module.train()
        loss = torch.nn.functional.mse_loss(model.module(data["input_ids"]), data["rewards"])
        model.module.backward(loss)
        model.module.step()
        model.inc_version()
        return {"critic_loss": loss.item()}


register_model("plot_reward", plot_reward)
register_interface("plot_sft", Sft)
register_interface("plot_actor", Actor)
register_interface("plot_critic", Critic)
register_interface("plot_reward", Critic)
