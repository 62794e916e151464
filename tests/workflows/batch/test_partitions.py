"""Partitions that would accept a job and never start it."""

import pytest

from determined_workflows.batch import partitions

KNOWN = partitions.parse("""\
PartitionName=compute AllowGroups=ALL Default=YES MaxTime=UNLIMITED State=UP TotalCPUs=512
PartitionName=short Default=NO MaxTime=00:05:00 State=UP
PartitionName=down Default=NO MaxTime=UNLIMITED State=DOWN
""")


@pytest.mark.parametrize(
    ("wanted", "time", "problem"),
    [
        (None, "10-00:00:00", None),
        ("short", "00-00:05:00", None),
        ("short", None, None),
        ("short,compute", "1-00:00:00", None),
        ("short", "00-00:05:01", "the time limit 00-00:05:01 is above the 00:05:00 of the partition short"),
        ("short", "UNLIMITED", "is above the 00:05:00"),
        ("down", "1", "the partition down is DOWN"),
        ("down,short", "9", "the partition down is DOWN"),
        ("comput", "1", 'there is no partition "comput"; did you mean "compute"?'),
        ("gpu", "1", 'there is no partition "gpu"; there are compute, short, down'),
    ],
)
def test_a_partition_is_checked_with_the_limit(wanted: str | None, time: str | None, problem: str | None) -> None:
    found = partitions.problem(KNOWN, wanted, time)
    assert found is None if problem is None else problem in str(found)


def test_without_a_default_partition_one_has_to_be_named() -> None:
    assert "no partition is the default" in str(partitions.problem(KNOWN[1:], None, "1"))


def test_the_limit_of_a_partition_is_in_seconds() -> None:
    assert partitions.limit(KNOWN, "short,compute") == 300
    assert partitions.limit(KNOWN, None) is None


def test_more_nodes_than_a_partition_gives_are_refused() -> None:
    """Slurm accepts such a job, and never starts it."""
    known = partitions.parse(
        "PartitionName=compute Default=YES MaxNodes=UNLIMITED MaxTime=UNLIMITED State=UP TotalNodes=2"
    )
    assert partitions.problem(known, None, None, nodes=2) is None
    assert "needs 9 nodes, and the partition compute gives 2" in str(partitions.problem(known, None, None, nodes=9))
