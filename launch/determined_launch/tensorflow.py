"""``python3 -m determined.launch.tensorflow``: a layer of Determined that this product does not have."""

import sys
from collections.abc import Sequence

MODULE = "determined.launch.tensorflow"
ADVICE = (
    "start the program without a layer (python3 SCRIPT) for one machine: tf.distribute.MirroredStrategy uses all of "
    "its slots; for several machines use determined.launch.horovod with horovod.tensorflow"
)


def main(_argv: Sequence[str] | None = None) -> int:
    """Says what to use instead.

    Args:
        _argv: arguments of the line, which are not read.

    Returns:
        2, the exit code for a line that cannot be used.

    Example:
        >>> main([])
        2
    """
    print(f"{MODULE} is not supported; {ADVICE}", file=sys.stderr, flush=True)
    return 2


if __name__ == "__main__":
    sys.exit(main())
