"""The matrix memory of the Hydra example, its samples and its learning rates."""

import math

import pytest
import torch
from mlstm.config_schema import ConstantConfig, CosineConfig, LinearWarmupConfig, ModelConfig
from mlstm.data import Samples
from mlstm.model import LanguageModel, read_memory
from mlstm.optimization import lr_share

pytestmark = pytest.mark.torch


def test_reading_a_whole_sequence_equals_the_recurrence_step_by_step() -> None:
    batch, heads, time, width = 2, 3, 7, 4
    torch.manual_seed(1)
    query, key, value = torch.randn(3, batch, heads, time, width, dtype=torch.float64)
    input_gate, forget_gate = 3 * torch.randn(2, batch, heads, time, dtype=torch.float64)
    outputs = read_memory(query, key, value, input_gate, forget_gate)
    memory = torch.zeros(batch, heads, width, width, dtype=torch.float64)
    weight = torch.zeros(batch, heads, width, dtype=torch.float64)
    for step in range(time):
        forget, insert = torch.sigmoid(forget_gate[..., step]), torch.exp(input_gate[..., step])
        k, v = key[:, :, step] / math.sqrt(width), value[:, :, step]
        memory = forget[..., None, None] * memory + insert[..., None, None] * v[..., :, None] * k[..., None, :]
        weight = forget[..., None] * weight + insert[..., None] * k
        q = query[:, :, step]
        total = (weight * q).sum(-1, keepdim=True).abs().clamp(min=1.0)
        torch.testing.assert_close(outputs[:, :, step], (memory @ q[..., None])[..., 0] / total)


def test_no_output_of_the_language_model_depends_on_a_later_token() -> None:
    torch.manual_seed(2)
    model = LanguageModel(ModelConfig("tiny", embedding_dim=8, num_blocks=2, num_heads=2, vocab_size=11))
    tokens = torch.randint(11, (1, 6))
    changed = tokens.clone()
    changed[0, 4] = (tokens[0, 4] + 1) % 11
    before, after = model(tokens), model(changed)
    torch.testing.assert_close(before[:, :4], after[:, :4], rtol=0, atol=0)
    assert not torch.equal(before[:, 4:], after[:, 4:])


def test_processes_share_the_samples_of_a_step_and_an_epoch_has_each_once() -> None:
    samples = Samples(torch.arange(24)[:, None], torch.empty(0, 1))

    def rows(step: int, rank: int, world_size: int, per_device: int) -> list[int]:
        batch = samples.batch(step, seed=3, rank=rank, world_size=world_size, per_device=per_device, parts=2)
        return batch.flatten().tolist()

    for step in range(3):
        assert sorted(rows(step, 0, 2, 2) + rows(step, 1, 2, 2)) == sorted(rows(step, 0, 1, 4))
    assert sorted(row for step in range(3) for row in rows(step, 0, 1, 4)) == list(range(24))
    assert rows(3, 0, 1, 4) != rows(0, 0, 1, 4)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (ConstantConfig(), [1, 1, 1, 1, 1]),
        (LinearWarmupConfig(warmup_steps=2), [0.5, 1, 1, 1, 1]),
        (CosineConfig(warmup_steps=2, final_share=0.2), [0.5, 1, 1, 0.6, 0.2]),
        (
            CosineConfig(warmup_steps=0, final_share=0.0),
            [1, 0.5 + math.sqrt(0.5) / 2, 0.5, 0.5 - math.sqrt(0.5) / 2, 0],
        ),
    ],
)
def test_the_learning_rate_of_each_of_five_steps(config: ConstantConfig, expected: list[float]) -> None:
    assert [lr_share(config, step, 4) for step in range(5)] == pytest.approx(expected)
