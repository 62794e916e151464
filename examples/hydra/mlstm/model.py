"""A language model of blocks with a matrix memory: a recurrent layer whose state is a matrix for each head.

The memory ``C`` takes up an outer product of value and key at each step, weighted by an input gate, and forgets by
another gate: ``C_t = f_t C_{t-1} + i_t v_t k_t^T``. A query reads it: ``h_t = C_t q_t``, divided by the weight that the
keys have. Over a whole sequence this is a sum over earlier steps, which one product of matrices computes for all steps
at once.
"""

import math

import torch
from torch import nn

from mlstm.config_schema import ModelConfig

FORGET_BIAS = 3.0
"""New gates let the memory keep about 95 % a step."""


class MatrixMemory(nn.Module):
    """One recurrent layer with ``num_heads`` memories."""

    def __init__(self, embedding_dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.query_key_value = nn.Linear(embedding_dim, 3 * embedding_dim, bias=False)
        self.gates = nn.Linear(embedding_dim, 2 * num_heads)
        self.output_gate = nn.Linear(embedding_dim, embedding_dim)
        self.head_norm = nn.GroupNorm(num_heads, embedding_dim)
        self.output = nn.Linear(embedding_dim, embedding_dim, bias=False)
        with torch.no_grad():
            self.gates.bias[num_heads:] = FORGET_BIAS

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Maps ``(batch, time, embedding)`` to the same shape; no output sees a later input."""
        batch, time, width = x.shape
        query, key, value = (
            part.view(batch, time, self.num_heads, -1).transpose(1, 2)
            for part in self.query_key_value(x).chunk(3, dim=-1)
        )
        input_gate, forget_gate = self.gates(x).transpose(1, 2).chunk(2, dim=1)
        read = read_memory(query, key, value, input_gate, forget_gate)
        read = self.head_norm(read.transpose(1, 2).reshape(batch * time, width)).view(batch, time, width)
        result: torch.Tensor = self.output(torch.sigmoid(self.output_gate(x)) * read)
        return result


def read_memory(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    input_gate: torch.Tensor,
    forget_gate: torch.Tensor,
) -> torch.Tensor:
    """Returns what each query reads of the memory at its step.

    ``query``, ``key`` and ``value`` are ``(batch, head, time, width)``; the gates, before their nonlinearities
    (exponential for input, sigmoid for forget), are ``(batch, head, time)``.
    """
    time = query.shape[2]
    kept = torch.cumsum(nn.functional.logsigmoid(forget_gate), dim=-1)
    log_weight = kept[..., :, None] - kept[..., None, :] + input_gate[..., None, :]
    later = torch.ones(time, time, dtype=torch.bool, device=query.device).triu(1)
    log_weight = log_weight.masked_fill(later, -math.inf)
    # The exponential of the input gate has no bound; the largest weight of a step becomes one.
    largest = log_weight.amax(dim=-1, keepdim=True)
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1]) * torch.exp(log_weight - largest)
    total = torch.maximum(scores.sum(dim=-1, keepdim=True).abs(), torch.exp(-largest))
    return scores @ value / total


class Block(nn.Module):
    """A memory and a feed-forward layer, each after a norm and beside a residual connection."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.embedding_dim
        self.memory_norm = nn.LayerNorm(width)
        self.memory = MatrixMemory(width, config.num_heads)
        self.feed_norm = nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.memory(self.memory_norm(x))
        result: torch.Tensor = x + self.feed(self.feed_norm(x))
        return result


class LanguageModel(nn.Module):
    """Predicts the next token of each position."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.vocab_size, config.embedding_dim)
        self.blocks = nn.Sequential(*(Block(config) for _ in range(config.num_blocks)))
        self.norm = nn.LayerNorm(config.embedding_dim)
        self.head = nn.Linear(config.embedding_dim, config.vocab_size)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Maps tokens ``(batch, time)`` to logits ``(batch, time, vocabulary)``."""
        result: torch.Tensor = self.head(self.norm(self.blocks(self.embedding(tokens))))
        return result

    def loss(self, samples: torch.Tensor) -> torch.Tensor:
        """Returns the mean loss over samples of ``context_length + 1`` tokens."""
        logits = self(samples[:, :-1])
        return nn.functional.cross_entropy(logits.flatten(0, 1), samples[:, 1:].flatten())
