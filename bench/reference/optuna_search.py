"""A search with Optuna's successive halving: prints events and trials per second. Runs under Optuna's own Python.

``optuna_search.py TRIALS [STORAGE]``: the same trials, rungs and random losses as those of ``bench.search``.
"""

import random
import sys
import time

import optuna

STEP, LAST = 4, 64


def main(trials: int, storage: str | None) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=STEP, reduction_factor=4)
    sampler = optuna.samplers.RandomSampler(seed=1)
    study = optuna.create_study(storage=storage, sampler=sampler, pruner=pruner)
    losses = random.Random(1)
    events = 0
    start = time.perf_counter()
    for _ in range(trials):
        trial = study.ask()
        trial.suggest_float("x", 0.0, 1.0)
        state = optuna.trial.TrialState.COMPLETE
        loss = 0.0
        for step in range(STEP, LAST + 1, STEP):
            loss = losses.random()
            trial.report(loss, step)
            events += 1
            if trial.should_prune():
                state = optuna.trial.TrialState.PRUNED
                break
        study.tell(trial, loss if state is optuna.trial.TrialState.COMPLETE else None, state)
        events += 1
    seconds = time.perf_counter() - start
    print(events / seconds, trials / seconds)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
