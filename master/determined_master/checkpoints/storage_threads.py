"""Threads that touch checkpoint storage, apart from all others: hanging storage blocks nothing else."""

from determined_master.offloading.threads import Threads

CONCURRENCY = 16
in_thread = Threads("checkpoint storage", CONCURRENCY).run
