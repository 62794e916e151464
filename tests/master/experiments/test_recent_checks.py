"""Results of checks that wait for the creation of their experiment."""

from determined.config import CheckResult
from determined_master.experiments.commands.config_check import CheckedConfig
from determined_master.experiments.commands.recent_checks import MAX_AGE_SECONDS, MAX_CHECKS, RecentChecks


def result(name: str) -> CheckedConfig:
    return CheckedConfig(CheckResult(name, (), None), {"name": name})


def test_a_result_is_taken_once_and_for_the_kind_of_cluster_that_it_was_checked_for() -> None:
    checks = RecentChecks()
    checks.put("text", result("a"), has_containers=False)
    assert checks.pop("text", has_containers=True) is None
    assert checks.pop("text", has_containers=False) == result("a")
    assert checks.pop("text", has_containers=False) is None


def test_an_old_result_is_forgotten() -> None:
    now = 0.0
    checks = RecentChecks(lambda: now)
    checks.put("text", result("a"), has_containers=False)
    now = MAX_AGE_SECONDS + 1
    assert checks.pop("text", has_containers=False) is None


def test_the_oldest_of_too_many_results_is_forgotten() -> None:
    checks = RecentChecks()
    for number in range(MAX_CHECKS + 1):
        checks.put(str(number), result(str(number)), has_containers=False)
    assert checks.pop("0", has_containers=False) is None
    assert checks.pop(str(MAX_CHECKS), has_containers=False) == result(str(MAX_CHECKS))
