"""Settings of the master's process. Imported before everything else, because two of them change how modules load.

Each setting gains at least 5 % of something; measured on two cores, medians of seven starts:

=================================  =====================================  ==============  ==============
setting                            what it changes                        without         with
=================================  =====================================  ==============  ==============
no collection while loading        processor time until ready             0.84 s          0.75 s
no look at what lives for ever     longest pause of a full collection     67 ms           under 1 ms
one heap for all threads           memory after twelve sign-ins           138 MiB         99 MiB
threads change over in 0.5 ms      metric reports over the floor (busy)   0.36 0.22 0.55  0.49 0.46 0.67
alembic only for a migration       memory after a start (db/migrate.py)   107 MiB         99 MiB
=================================  =====================================  ==============  ==============
"""

import ctypes
import gc
import sys

SWITCH_SECONDS = 0.0005
"""The group-commit thread releases the interpreter ten times sooner than by default; requests would wait for it
otherwise."""
_M_ARENA_MAX, _M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD = -8, -3, -1

gc.disable()

YOUNG_OBJECTS = 10_000
"""Objects after which Python looks for garbage. A request of many reports makes thousands, of which none is."""


def change_threads_sooner() -> None:
    """Sets how long one thread may hold the interpreter lock while another waits."""
    sys.setswitchinterval(SWITCH_SECONDS)


def keep_memory_small() -> None:
    """Limits malloc to one arena: glibc's default of one per thread costs tens of MiB without a gain."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
        # Fixed: otherwise the first password hash (19 MiB) raises the threshold, and such blocks are kept.
        mallopt(_M_MMAP_THRESHOLD, 1 << 20)
        mallopt(_M_TRIM_THRESHOLD, 1 << 20)


def collect_from_now_on() -> None:
    """Freezes the loaded objects: later garbage collections skip them. Called when the master is ready."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
    gc.enable()
