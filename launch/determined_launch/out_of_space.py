"""Distinguishes errors of a full disk or an exhausted quota from other errors of the file system."""

import errno

OUT_OF_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})


def is_out_of_space(error: BaseException) -> bool:
    """Returns True if ``error`` says that the disk is full or its quota is reached.

    >>> is_out_of_space(OSError(errno.ENOSPC, "no space left"))
    True
    """
    return isinstance(error, OSError) and error.errno in OUT_OF_SPACE
