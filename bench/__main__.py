"""``python -m bench [NAME…]`` runs benchmarks and prints their figures; without names, all of them."""

import importlib
import sys
import time
from collections.abc import Sequence

from bench import machine
from bench.figure import Skipped

MODULES = (
    *(
        "cli",
        "harness_step",
        "first_step",
        "ingest",
        "ingest_under_create",
        "memory",
        "pause",
        "recovery",
        "search",
        "scheduling",
        "long_queue",
        "noop_trials",
        "large_cluster",
        "streams",
        "slurm_pool",
        "containers",
        "postgresql",
        "checkpoint_storage",
        "contexts",
        "environments",
    ),
    *("grid_runner", "hydra", "batch", "rlhf_streams", "rlhf_step", "launchers", "many_experiments", "worker_death"),
    *("page_first_load", "page_many", "page_compare", "page_log", "page_live", "page_idle", "page_wire", "compression"),
)


def main(names: Sequence[str]) -> int:
    unknown = [name for name in names if name not in MODULES]
    if unknown:
        print(f"bench: no figures are called {', '.join(unknown)}; there are {', '.join(MODULES)}", file=sys.stderr)
        return 2
    print(time.strftime("%Y-%m-%d"), machine.kind(), flush=True)
    missed = failed = 0
    for name in names or MODULES:
        try:
            for figure in importlib.import_module(f"bench.{name}").figures():
                missed += not figure.is_met
                print(figure.line(), flush=True)
        except Skipped as reason:
            print(f"{name}: skipped: {reason}", flush=True)
        except Exception as error:
            failed += 1
            print(f"{name}: FAILED: {type(error).__name__}: {error}", flush=True)
    print(f"{missed} missed, {failed} could not be taken; {machine.kind()}", flush=True)
    return 1 if missed or failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
