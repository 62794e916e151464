"""Help texts of ``det``: their width, and a description of every option."""

import argparse
from importlib import import_module

import pytest

from determined_cli import command_table
from determined_cli.command import Command
from determined_cli.main import main


def _commands() -> list[tuple[str, ...]]:
    commands: list[tuple[str, ...]] = []

    def add(prefix: tuple[str, ...], verbs: tuple[Command, ...]) -> None:
        for verb in verbs:
            path = (*prefix, verb.name)
            commands.append(path)
            add(path, tuple(verb.verbs))

    for noun, (name, _, _) in command_table.NOUNS.items():
        module = import_module(name)
        commands.append((noun,))
        if noun not in module.NOUNS_WITHOUT_VERBS:
            add((noun,), tuple(module.VERBS))
    return commands


COMMANDS = _commands()


@pytest.mark.parametrize("words", [(), *COMMANDS], ids=" ".join)
def test_help_fits_80_columns(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*words, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("usage: det")
    assert [line for line in lines if len(line) > 80 and "det e create config.yaml" not in line] == []
    assert [line for line in lines if argparse.SUPPRESS in line] == []


def test_names_and_descriptions_of_verbs_are_separated_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    main(["trial", "--help"])
    line = next(line for line in capsys.readouterr().out.splitlines() if "download" in line)
    assert "download-checkpoint, download  " in line


@pytest.mark.parametrize(("verb", "missing"), [("check", "SCRIPT"), ("run", "SCRIPT"), ("continue", "FOLDER")])
def test_only_required_arguments_are_named_as_missing(
    verb: str, missing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hydra", verb]) == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith(f"arguments are required: {missing}")


@pytest.mark.parametrize("noun", command_table.NOUNS)
def test_every_option_is_described(noun: str) -> None:
    def check(verbs: tuple[Command, ...]) -> None:
        for verb in verbs:
            parser = argparse.ArgumentParser(add_help=False)
            for add in verb.arguments:
                add(parser)
            for action in vars(parser)["_actions"]:
                assert not action.option_strings or action.help, f"{verb.name} {action.option_strings}"
            check(tuple(verb.verbs))

    check(tuple(import_module(command_table.NOUNS[noun][0]).VERBS))


@pytest.mark.parametrize("words", [("experiment",), ("e", "create"), ("up",)])
def test_help_before_the_noun_prints_the_same(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--help"]) == 0
    expected = capsys.readouterr().out
    assert main(["help", *words]) == 0
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize("noun", command_table.NOT_OFFERED)
def test_commands_of_determined_that_are_missing_name_the_substitute(
    noun: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_table.find(noun) is None
    assert main([noun, "list"]) == 2
    message = capsys.readouterr().err
    assert f'"{noun}" is not supported yet; {command_table.NOT_OFFERED[noun]}' in message
    assert "coming-from-determined" in message
