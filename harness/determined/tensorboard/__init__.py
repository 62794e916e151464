"""Writers of TensorBoard event files, under the names of Determined: scripts write into the trial's own folder."""

from typing import Any

from determined._not_included import without_attribute
from determined.tensorboard.metric_writers import MetricWriter

__all__ = ["MetricWriter"]


def __getattr__(name: str) -> Any:  # noqa: ANN401  # it only raises
    raise without_attribute("tensorboard", name)
