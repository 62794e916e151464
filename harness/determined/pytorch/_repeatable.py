"""Names at the start of training what a resumed process cannot repeat, instead of leaving it to a wrong result."""

import copy
import logging
from collections.abc import Iterable
from itertools import islice
from typing import Any

from torch.utils import data as torch_data

from determined.pytorch import _rng
from determined.pytorch._passes import has_state, is_iterable, parts_of

logger = logging.getLogger(__name__)

MAX_COMPARED_ITEMS = 1000


def warn_of_unrepeatable_order(loader: Any, *, is_chief: bool) -> None:  # noqa: ANN401  # a loader of the user
    """Logs one line if the order of a training loader cannot be repeated, or only under a condition.

    Args:
        loader: a ``determined.pytorch.DataLoader``, a torch data loader or any other iterable.
        is_chief: True on rank 0, which logs; the samplers of all ranks are asked equally often.
    """
    parts = parts_of(loader)
    if any(hasattr(part, "set_epoch") or has_state(part) for part in parts) or isinstance(loader, (list, tuple)):
        return
    if not hasattr(loader, "dataset") or (isinstance(loader, torch_data.DataLoader) and is_iterable(loader)):
        if not is_chief:
            return
        name = type(getattr(loader, "dataset", loader)).__name__
        logger.info(
            "after a pause or a failure %s is read again from its beginning: training repeats exactly only if it yields"
            " the same records at each reading. With state_dict and load_state_dict, or set_epoch, it would not be read"
            " again",
            name,
        )
        return
    samplers = [part for part in parts if part is not loader]
    # A batch sampler contains its sampler.
    outer = getattr(loader, "batch_sampler", None) or getattr(loader, "sampler", None)
    if outer is not None and not _repeats(outer, loader.dataset) and is_chief:
        named = next((part for part in reversed(samplers) if not isinstance(part, torch_data.BatchSampler)), outer)
        logger.warning(
            "%s yields another order each time, also with the same random streams: after a pause or a failure the rest "
            "of an epoch is trained in another order than without. Draw the order from a torch.Generator or from "
            "torch, numpy or random, or give the sampler set_epoch, or state_dict and load_state_dict",
            type(named).__name__,
        )


def _repeats(sampler: Iterable[Any], dataset: object) -> bool:
    """Returns False if the first items of two copies differ; True also for a sampler that cannot be copied."""
    # Samplers often refer to the records, whose copies would cost memory.
    shared = {id(each): each for each in (dataset, *getattr(dataset, "__dict__", {}).values())}
    try:
        first, second = (_beginning(copy.deepcopy(sampler, dict(shared))) for _ in range(2))
    except Exception:  # whatever a class of the user raises; what training needs of it fails there
        return True
    return first == second


def _beginning(sampler: Iterable[Any]) -> list[str]:
    with _rng.apart(0):
        return [repr(item) for item in islice(sampler, MAX_COMPARED_ITEMS)]
