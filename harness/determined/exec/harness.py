"""``python3 -m determined.exec.harness module:Class``: trains a trial class as the experiment configuration says."""

import importlib
import logging
import sys
from collections.abc import Sequence
from typing import Any

from determined.errors import DeterminedError, StorageError
from determined_launch import environment


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 when trained to the end or preempted; a user's exception leaves with its own traceback."""
    words = list(sys.argv[1:] if argv is None else argv)
    test_mode = "--test-mode" in words or bool(environment.current().get(environment.TEST_MODE))
    words = [word for word in words if word != "--test-mode"]
    if len(words) != 1 or ":" not in words[0]:
        print("usage: python3 -m determined.exec.harness [--test-mode] module:Class", file=sys.stderr)
        return 2
    logging.basicConfig(level=logging.INFO, format="%(levelname)s: [%(process)d] %(name)s: %(message)s")
    try:
        trial_class = find_class(words[0])
        from determined.pytorch import PyTorchTrial
        from determined.pytorch._legacy import run

        if not (isinstance(trial_class, type) and issubclass(trial_class, PyTorchTrial)):
            raise DeterminedError(f"{words[0]} is not a PyTorchTrial; other kinds of trial are not offered yet")
        run(trial_class, words[0], test_mode=test_mode)
    except StorageError as error:
        logging.getLogger(__name__).error("%s", error)
        return 1
    except DeterminedError as error:
        # ours says what is wrong by itself; where it stands in the user's code still helps
        logging.getLogger(__name__).error("%s", error, exc_info=error.__traceback__ is not None)
        return 1
    return 0


def find_class(spec: str) -> Any:
    """The class that ``module:Class`` names; the class may be nested, the module is looked for in this folder too."""
    module, _, name = spec.partition(":")
    if sys.path[:1] not in ([""], ["."]):
        sys.path.insert(0, "")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise DeterminedError(f"{module} has no class {name}") from None
    return found


if __name__ == "__main__":
    sys.exit(main())
