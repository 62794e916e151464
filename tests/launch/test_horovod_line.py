"""The command line for horovodrun: from the configuration and the user's overrides, which take precedence."""

import dataclasses

import pytest

from determined_launch import containers, horovod, horovod_line, launcher, process
from determined_launch.arguments import LaunchLine, parse
from determined_launch.environment import RendezvousFacts
from determined_launch.errors import LaunchError
from determined_launch.launcher import LaunchContext
from determined_launch.settings import LaunchSettings

ONE_MACHINE = horovod_line.Hosts(("localhost",), (2,), None)
TWO_MACHINES = horovod_line.Hosts(("localhost", "10.0.0.2"), (2, 4), "eth0")
DEFAULT = LaunchSettings()


def argv(hosts, *overrides, settings=DEFAULT):
    return horovod_line.build(overrides, hosts, settings, python="py", command=["prog", "x"], autotune_log="/log")


def value_of(words, option):
    return words[words.index(option) + 1] if option in words else None


def test_the_horovod_command_line_on_one_machine():
    assert argv(ONE_MACHINE) == (
        *("py", "-m", "horovod.runner.launch", "-np", "2", "-H", "localhost:2", "--disable-cache"),
        *("--start-timeout", "1200", "--gloo-timeout-seconds", "240", "--fusion-threshold-mb", "64"),
        *("--cycle-time-ms", "1", "--cache-capacity", "1024", "--gloo"),
        *("--no-hierarchical-allreduce", "--no-hierarchical-allgather", "prog", "x"),
    )


def test_several_machines_name_the_interface():
    words = argv(TWO_MACHINES)
    assert value_of(words, "-H") == "localhost:2,10.0.0.2:4"
    assert value_of(words, "--network-interfaces") == "eth0"


def test_the_configuration_sets_autotune_fusion_and_cycle_time():
    tuned = dataclasses.replace(DEFAULT, autotune=True, horovod_arguments=("--log-level", "DEBUG"))
    words = argv(ONE_MACHINE, settings=tuned)
    assert value_of(words, "--autotune-log-file") == "/log"
    assert "--fusion-threshold-mb" not in words
    assert words.index("--log-level") > words.index("--gloo")
    words = argv(ONE_MACHINE, settings=dataclasses.replace(DEFAULT, fusion_megabytes=8, cycle_milliseconds=5))
    assert (value_of(words, "--fusion-threshold-mb"), value_of(words, "--cycle-time-ms")) == ("8", "5")


@pytest.mark.parametrize(
    ("hosts", "overrides", "expected_hosts"),
    [
        (ONE_MACHINE, ["-np", "3"], "localhost:3"),
        (ONE_MACHINE, ["--num-proc", "1"], "localhost:1"),
        (TWO_MACHINES, ["-np", "3"], "localhost:2,10.0.0.2:1"),
        (TWO_MACHINES, ["-np", "2"], "localhost:2"),
        (TWO_MACHINES, ["-H", "a:1"], "a:1"),
    ],
)
def test_the_number_of_processes_changes_the_slots_of_the_hosts(hosts, overrides, expected_hosts):
    words = argv(hosts, *overrides)
    assert [words[i + 1] for i, word in enumerate(words) if word == "-H"] == [expected_hosts]


def test_more_processes_than_slots_are_refused():
    with pytest.raises(LaunchError, match="-np 7 was given, but this allocation has 6 slots on 2 machines"):
        argv(TWO_MACHINES, "-np", "7")


@pytest.mark.parametrize(
    ("override", "excluded"),
    [
        ("--hierarchical-allreduce", "--no-hierarchical-allreduce"),
        ("--mpi", "--gloo"),
        ("-Ha:1", "-H"),
        ("--autotune", "--fusion-threshold-mb"),
        ("--hostfile=h", "-H"),
        ("--network-interface=ib0", "--network-interfaces"),
    ],
)
def test_an_argument_that_an_override_excludes_is_left_out(override, excluded):
    words = argv(TWO_MACHINES, override)
    assert override in words
    assert excluded not in words


def test_no_autotune_overrides_the_configuration():
    words = argv(ONE_MACHINE, "--no-autotune", settings=dataclasses.replace(DEFAULT, autotune=True))
    assert "--autotune" not in words
    assert "--autotune-log-file" not in words
    words = argv(ONE_MACHINE, "--no-autotune", settings=dataclasses.replace(DEFAULT, horovod_arguments=("--autotune",)))
    assert "--autotune" not in words


def test_overrides_follow_all_our_arguments():
    words = argv(ONE_MACHINE, "--fusion-threshold-mb", "1", "--cycle-time-ms", "2", "--start-timeout", "5")
    assert words[-8:-2] == ("--fusion-threshold-mb", "1", "--cycle-time-ms", "2", "--start-timeout", "5")


def test_elastic_options_let_horovod_restart_workers():
    assert horovod_line.restarts(["--min-np", "1"], DEFAULT)
    assert horovod_line.restarts(["--host-discovery-script", "d.sh"], DEFAULT)
    assert not horovod_line.restarts([], DEFAULT)


def test_containers_of_one_machine_have_different_host_names_and_ports():
    facts = RendezvousFacts(("10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.3"), 0, (1,) * 5)
    assert containers.host_names(facts) == ["localhost", "127.77.0.2", "10.0.0.2", "127.77.0.4", "127.77.0.5"]
    assert containers.ports(facts, {"DTRAIN_SSH_PORT": "100"}) == [100, 101, 100, 100, 101]
    ipv6_facts = RendezvousFacts(("fd00::1", "fd00::2"), 0, (1, 1))
    assert containers.host_names(ipv6_facts) == ["localhost", "127.77.0.2"]


@pytest.mark.parametrize(
    ("words", "overrides"),
    [
        (["--autohorovod", "train.py", "x"], ()),
        (["--autohorovod", "--", "train.py", "x"], ()),
        (["-v", "--", "--autohorovod", "train.py", "x"], ("-v",)),
    ],
)
def test_autohorovod_starts_a_plain_process_for_one_slot_only(monkeypatch, capfd, words, overrides):
    line = parse(words, module=horovod.MODULE, python="py")
    assert line == LaunchLine(overrides, ("py", "train.py", "x"), is_auto=True)
    started = []
    monkeypatch.setattr(process, "run", lambda argv, environ: started.append((argv, environ["DET_CHIEF_IP"])) or 7)
    monkeypatch.setattr(launcher, "require", lambda *_: pytest.fail("it needs horovod"))
    one_slot = RendezvousFacts(("10.0.0.1",), 0, (1,))
    assert horovod.launch(LaunchContext(horovod.MODULE, line, one_slot, {})) == 7
    assert started == [(("py", "train.py", "x"), "10.0.0.1")]
    assert ("without effect in a plain process: -v" in capfd.readouterr().err) == bool(overrides)
    for facts in (RendezvousFacts(("10.0.0.1",), 0, (2,)), RendezvousFacts(("10.0.0.1", "10.0.0.2"), 1, (1, 1))):
        with pytest.raises(pytest.fail.Exception, match="it needs horovod"):
            horovod.launch(LaunchContext(horovod.MODULE, line, facts, {}))


def test_autohorovod_after_the_separator_is_an_argument_of_the_script():
    line = parse(["train.py", "--", "--autohorovod"], module=horovod.MODULE, python="py")
    assert line == LaunchLine((), ("py", "train.py", "--", "--autohorovod"))
