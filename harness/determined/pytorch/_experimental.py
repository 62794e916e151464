"""Switches of the trial context that few trials need."""

from typing import Any


class ExperimentalContext:
    """``context.experimental``."""

    def __init__(self, parent: Any) -> None:
        self._parent = parent
        self.plain_loaders = False
        self.auto_to_device = True

    def disable_dataset_reproducibility_checks(self) -> None:
        """Lets the trial return a torch DataLoader; a resumed epoch is then read again up to its position."""
        self.plain_loaders = True

    def disable_auto_to_device(self) -> None:
        """The trial moves its batches itself."""
        self.auto_to_device = False
