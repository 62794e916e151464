"""Options in the spellings that argparse, which the launchers use, accepts."""

import argparse

import pytest

from determined_launch import options

KNOWN = {name: name for name in ("module", "no_python", "no_ssh", "hostfile", "ssh_port", "max_restarts")} | {
    "H": "hostfile",
    "p": "ssh_port",
    "m": "module",
}


def parsed(words):
    """Returns what argparse reads from the same words."""
    parser = argparse.ArgumentParser()
    for name in ("-H", "-p"):
        parser.add_argument(name, f"--{KNOWN[name[1:]]}", dest=KNOWN[name[1:]])
    parser.add_argument("-m", "--module", action="store_const", const="1")
    parser.add_argument("--no-python", "--no_python", action="store_const", const="1")
    parser.add_argument("--no_ssh", action="store_const", const="1")
    parser.add_argument("--max_restarts")
    return {name: value for name, value in vars(parser.parse_args(words)).items() if value is not None}


@pytest.mark.parametrize(
    "words",
    [
        ["--module", "--no_python"],
        ["--modul", "--no-pyth"],
        ["--mo", "--max", "3"],
        ["-Hhosts", "-p", "22"],
        ["-H=hosts", "-p22"],
        ["-Ha=b"],
        ["-mp22"],
        ["-m", "-mHhosts"],
    ],
)
def test_options_are_read_as_argparse_reads_them(words):
    assert options.given(words, KNOWN) == parsed(words)
    left = options.without(words, ["module", "no-python"], KNOWN)
    expected = {name: value for name, value in parsed(words).items() if name not in ("module", "no_python")}
    assert parsed(left) == expected


@pytest.mark.parametrize("words", [["--no_"], ["--m"], ["-prefix-timestamp"]])
def test_an_ambiguous_or_unknown_option_is_left_to_the_launcher(words):
    assert options.given(words, KNOWN) == {}
    assert options.without(words, ["module", "no_python"], KNOWN) == tuple(words)
