"""The options with which torch synchronizes the gradients of several slots."""

import warnings
from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")

from determined.pytorch._gradient_sync import DDPSync  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture
def process_group() -> Iterator[None]:
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("process_group")
def test_a_wrapped_model_does_not_broadcast_buffers_and_gives_no_warning() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wrapped = DDPSync(torch.device("cpu")).model(torch.nn.BatchNorm1d(2))
    assert [str(warning.message) for warning in caught] == []
    assert not wrapped.forward_sync_buffers
