"""The verbs of all workflows: each has every verb, with the same flags, targets and words.

A new workflow is one more line of ``WORKFLOWS``.
"""

import argparse
from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple

import pytest

from determined_cli import command_table
from determined_cli.command import Command, find
from determined_cli.main import main
from determined_cli.workflow_verbs import ALIASES, FLAGS, PURPOSES, TARGETS, Targets, complete


class Workflow(NamedTuple):
    """What is special in a workflow: further words of the program that it follows, and the targets that it does not have."""

    words: Mapping[str, str] = {}
    refused: tuple[str, ...] = ()


WORKFLOWS = {
    "runner": Workflow(words={"attach": "logs"}, refused=("slurm",)),
    "hydra": Workflow(words={"continue": "retry"}),
    "rlhf": Workflow(),
    "batch": Workflow(words={"attach": "logs"}),
}
WITH_TARGET = tuple(name for name, flags in FLAGS.items() if "--on" in flags)

workflow = pytest.mark.parametrize("noun", WORKFLOWS)
each_verb = pytest.mark.parametrize("name", PURPOSES)


def verbs(noun: str) -> tuple[Command, ...]:
    return tuple(import_module(command_table.NOUNS[noun][0]).VERBS)


def verb(noun: str, name: str) -> Command:
    found = find(verbs(noun), name)
    assert found is not None, f"det {noun} has no verb {name}"
    return found


def options(noun: str, name: str) -> dict[str, argparse.Action]:
    """Returns the options of a verb by their spellings."""
    parser = argparse.ArgumentParser()
    for add in verb(noun, name).arguments:
        add(parser)
    return {text: action for action in vars(parser)["_actions"] for text in action.option_strings}


@workflow
def test_a_workflow_has_the_shared_verbs_first_and_in_their_order(noun: str) -> None:
    assert [each.name for each in verbs(noun)][: len(PURPOSES)] == list(PURPOSES)


@workflow
@each_verb
def test_each_verb_says_in_its_help_what_it_does_in_this_workflow(
    noun: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([noun, name, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: det {noun} {name}")
    own = verb(noun, name).help
    assert len(own.split()) > 3
    assert own != PURPOSES[name]
    assert own not in [verb(other, name).help for other in WORKFLOWS if other != noun]


@workflow
@pytest.mark.parametrize(("name", "flags"), FLAGS.items())
def test_each_verb_has_the_shared_flags_with_their_values(noun: str, name: str, flags: tuple[str, ...]) -> None:
    found = options(noun, name)
    assert [flag for flag in flags if flag not in found] == []
    for flag in flags:
        assert (found[flag].nargs == 0) == (flag != "--on"), f"{flag} takes a value in one workflow and none in another"


@workflow
def test_the_words_of_other_tools_and_of_the_documents_are_aliases(noun: str) -> None:
    words = {word: name for name, aliases in ALIASES.items() for word in aliases} | dict(WORKFLOWS[noun].words)
    assert {word: verb(noun, word).name for word in words} == words


@workflow
@pytest.mark.parametrize("name", WITH_TARGET)
def test_an_unknown_target_names_the_valid_ones(noun: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([noun, name, "--on", "mars"]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    offered = ", ".join(target for target in TARGETS if target not in WORKFLOWS[noun].refused)
    assert line.endswith(f'argument --on: `det {noun}` has no target "mars"; valid: {offered}')


@workflow
@pytest.mark.parametrize("name", WITH_TARGET)
@pytest.mark.parametrize("target", TARGETS)
def test_a_target_is_offered_in_the_help_or_refused_with_what_to_use_instead(
    noun: str, name: str, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    action = options(noun, name)["--on"]
    assert (f"{target} ({TARGETS[target]})" in str(action.help)) == (target not in WORKFLOWS[noun].refused)
    if target in WORKFLOWS[noun].refused:
        assert main([noun, name, "--on", target]) == 2
        line = capsys.readouterr().err.splitlines()[-1]
        assert "argument --on: " in line
        assert "use" in line
        assert "`det " in line
        assert "--on " in line.partition("argument --on: ")[2]


@workflow
@pytest.mark.parametrize("name", WITH_TARGET)
def test_a_flag_of_the_document_and_another_target_exclude_each_other(
    noun: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    same = [(text, action) for text, action in options(noun, name).items() if action.dest == "on" and text != "--on"]
    for text, action in same:
        other = next(target for target in TARGETS if target not in (*WORKFLOWS[noun].refused, action.const))
        assert main([noun, name, text, "--on", other]) == 2
        assert "not allowed with argument" in capsys.readouterr().err


def test_a_workflow_that_forgets_a_verb_is_refused_with_its_name() -> None:
    others = [Command(name, "x", "x:x") for name in PURPOSES if name not in ("logs", "stop")]
    with pytest.raises(ValueError, match=r"`det batch` lacks logs, stop; every workflow has the verbs init, check, "):
        complete("batch", others, Targets(default={"run": "slurm", "retry": None}))
