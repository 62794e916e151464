"""The samplers of Determined by their names."""

import itertools

import pytest
from torch.utils.data import BatchSampler

from determined.pytorch import samplers

pytestmark = pytest.mark.torch


def test_the_shares_of_all_slots_cover_the_data():
    shares = [list(samplers.DistributedSampler(range(11), num_workers=3, rank=rank)) for rank in range(3)]
    assert sorted(itertools.chain(*shares)) == list(range(11))
    assert [len(samplers.DistributedSampler(range(11), 3, rank)) for rank in range(3)] == [4, 4, 3]
    with pytest.raises(ValueError, match="less than num_workers"):
        samplers.DistributedSampler(range(3), 3, 3)


def test_a_skip_sampler_skips_once_and_a_repeat_sampler_never_ends():
    sampler = samplers.SkipSampler(range(4), 3)
    assert list(sampler) == [3]
    assert list(sampler) == [0, 1, 2, 3]
    assert list(itertools.islice(samplers.RepeatSampler(range(2)), 5)) == [0, 1, 0, 1, 0]


def test_a_reproducible_shuffle_depends_only_on_seed_and_pass():
    first, second = (samplers.ReproducibleShuffleSampler(range(20), seed=7) for _ in range(2))
    passes = [list(first), list(first)]
    assert passes == [list(second), list(second)]
    assert passes[0] != passes[1]
    assert sorted(passes[0]) == list(range(20))


def test_batch_samplers_keep_batches_whole():
    batches = BatchSampler(range(8), batch_size=2, drop_last=False)
    assert list(samplers.DistributedBatchSampler(batches, 2, 1)) == [[2, 3], [6, 7]]
    assert list(samplers.SkipBatchSampler(batches, 3)) == [[6, 7]]
    shuffled = list(samplers.ReproducibleShuffleBatchSampler(batches, seed=1))
    assert sorted(shuffled) == [[0, 1], [2, 3], [4, 5], [6, 7]]
