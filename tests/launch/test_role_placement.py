"""Placement of roles on slots, and the ports and variables that follow from it."""

import random

import pytest

from determined_launch import ports, role_environment
from determined_launch.environment import RendezvousFacts
from determined_launch.role_file import Role
from determined_launch.role_placement import place, sharing


def facts(*slots, rank=0):
    return RendezvousFacts(tuple(f"10.0.0.{number + 1}" for number in range(len(slots))), rank, slots)


def role(name, count=1, slots=0):
    return Role(name, ("true",), count, slots)


def placed(roles, *slots):
    return [(process.label, process.container, process.slots) for process in place(roles, facts(*slots))]


def test_ranks_go_container_by_container_and_within_one_by_the_order_of_the_list():
    roles = [role("actor", 3, 1), role("master"), role("critic", 1, 2)]
    assert placed(roles, 2, 4) == [
        ("actor[0]", 0, (0,)),
        ("actor[1]", 0, (1,)),
        ("master[0]", 0, ()),
        ("actor[2]", 1, (0,)),
        ("critic[0]", 1, (1, 2)),
    ]
    assert [process.rank for process in place(roles, facts(2, 4))] == [0, 1, 2, 3, 4]


def test_a_process_takes_the_first_container_with_room_for_all_of_its_slots():
    assert placed([role("a", 1, 1), role("b", 1, 2), role("c", 1, 1)], 2, 2) == [
        ("a[0]", 0, (0,)),
        ("c[0]", 0, (1,)),
        ("b[0]", 1, (0, 1)),
    ]


def test_indices_of_a_role_follow_the_containers():
    """A role's ranks of torch are contiguous in each container."""
    found = placed([role("big", 1, 2), role("a", 3, 1)], 1, 3)
    assert found == [("a[0]", 0, (0,)), ("big[0]", 1, (0, 1)), ("a[1]", 1, (2,)), ("a[2]", 0, (0,))] or [
        label for label, *_ in found
    ] == ["a[0]", "a[1]", "big[0]", "a[2]"]
    containers = [container for label, container, _ in found if label.startswith("a")]
    assert containers == sorted(containers)


def test_more_processes_than_slots_share_them_in_turn():
    roles = [role("actor", 5, 1)]
    assert [slots for _, _, slots in placed(roles, 2)] == [(0,), (1,), (0,), (1,), (0,)]
    text = sharing(place(roles, facts(2)), facts(2))
    assert text == "the roles ask for 5 slots and the trial has 2 slots: up to 3 processes share a slot"


def test_nothing_is_said_if_each_process_has_its_own_slots():
    assert sharing(place([role("actor", 2, 1), role("master", 3)], facts(2)), facts(2)) == ""


def test_a_container_without_slots_counts_as_one_slot():
    assert placed([role("actor", 1, 1)], 0) == [("actor[0]", 0, (0,))]


def test_more_slots_than_the_largest_container_has_are_refused():
    with pytest.raises(ValueError, match="no container has 3 slots"):
        place([role("actor", 1, 3)], facts(2, 2))


def test_each_placement_has_all_processes_once_with_slots_of_one_container():
    draws = random.Random(40)
    for _ in range(300):
        counts = [draws.randint(1, 4) for _ in range(draws.randint(1, 4))]
        roles = [
            role(f"r{number}", draws.randint(1, 4), draws.randint(0, max(counts)))
            for number in range(draws.randint(1, 4))
        ]
        found = place(roles, facts(*counts))
        assert found == place(roles, facts(*counts, rank=len(counts) - 1))
        assert sorted(each.label for each in found) == sorted(
            f"{each.name}[{index}]" for each in roles for index in range(each.count)
        )
        for each in found:
            assert len(set(each.slots)) == each.role.slots
            assert all(0 <= slot < counts[each.container] for slot in each.slots)
        taken = [(each.container, slot) for each in found for slot in each.slots]
        assert bool(sharing(found, facts(*counts))) == (len(set(taken)) < len(taken))


def test_a_role_of_one_container_meets_at_the_loopback_address_and_one_of_several_at_its_first_process():
    here = facts(1, 1)
    processes = place([role("both", 2, 1), role("master")], here)
    known = role_environment.RolePorts({0: 1, 1: 2, 2: 3}, {"both": 4, "master": 5})
    environments = [role_environment.variables(process, processes, here, known, []) for process in processes]
    assert [(each["DET_ROLE"], each["MASTER_ADDR"], each["MASTER_PORT"]) for each in environments] == [
        ("both", "10.0.0.1", "4"),
        ("master", "127.0.0.1", "5"),
        ("both", "10.0.0.1", "4"),
    ]
    assert {each["DET_CHIEF_IP"] for each in environments} == {"10.0.0.1"}
    assert not any("CUDA_VISIBLE_DEVICES" in each for each in environments)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"CUDA_VISIBLE_DEVICES": "3,GPU-a"}, ["3", "GPU-a"]),
        ({"CUDA_VISIBLE_DEVICES": ""}, []),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, []),
        ({"DET_ALLOCATION_ID": "a.1"}, []),
        ({}, ["0", "1"]),
        ({"DET_SLOT_IDS": "[0]"}, ["0"]),
    ],
)
def test_the_devices_are_those_of_the_environment_or_off_the_cluster_of_the_machine(tmp_path, environ, expected):
    for name in ("nvidia0", "nvidia1", "nvidiactl", "null"):
        (tmp_path / name).touch()
    assert role_environment.devices(environ, tmp_path) == expected


def test_reservations_on_one_machine_never_have_the_same_port(monkeypatch):
    monkeypatch.setattr("secrets.randbelow", lambda _: 7)  # both begin at the same port
    with ports.Reservation(40) as first, ports.Reservation(40) as second:
        assert len({*first, *second}) == 80
        assert all(port in ports.RESERVABLE for port in (*first, *second))
        ports.check(first[0], "a reserved port is free for its process")
