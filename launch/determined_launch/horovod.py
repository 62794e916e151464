"""``python3 -m determined.launch.horovod``: not offered by this version; it says so."""

import sys
from collections.abc import Sequence

MODULE = "determined.launch.horovod"


def main(argv: Sequence[str] | None = None) -> int:
    """Refuses with the way out; nothing of the user's is started."""
    print(
        f"{MODULE}: this version has no Horovod launcher yet. "
        "Use: python3 -m determined.launch.torch_distributed -- (--trial module:Class | script args…)",
        file=sys.stderr,
        flush=True,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
