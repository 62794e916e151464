"""Generates completion scripts. They contain all words, so completing never starts ``det``."""

from argparse import Namespace

from determined_cli.completion import words


def run(args: Namespace) -> None:
    """Prints the script for the given shell."""
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell]())


def _cases() -> tuple[str, list[tuple[str, str, str]]]:
    """Returns all nouns, and (noun, verb, possible next words); an empty verb means "after the noun"."""
    table = words()
    cases = []
    for noun, verbs in table.items():
        if "" in verbs:
            cases.append((noun, "", " ".join(verbs[""])))
            continue
        cases.append((noun, "", " ".join(verbs)))
        cases += [(noun, verb, " ".join(flags)) for verb, flags in verbs.items()]
    return " ".join(table), cases


def _bash() -> str:
    nouns, cases = _cases()
    bare = {noun for noun, verb, _ in cases if not verb} - {noun for noun, verb, _ in cases if verb}
    arms = []
    for noun, verb, options in cases:
        pattern = f'"{noun} {verb}"' if verb else (f'"{noun} "*' if noun in bare else f'"{noun} "')
        arms.append(f'    {pattern}) words="{options}" ;;')
    # A star after the noun would shadow the arms of its verbs; only nouns without verbs have one.
    return "\n".join(
        [
            "_det() {",
            '  local cur="${COMP_WORDS[COMP_CWORD]}" noun="" verb="" i words=""',
            "  for ((i = 1; i < COMP_CWORD; i++)); do",
            '    case "${COMP_WORDS[i]}" in',
            "      -m|--master|-u|--user) ((i++)) ;;",
            "      -*) ;;",
            '      *) if [ -z "$noun" ]; then noun="${COMP_WORDS[i]}"',
            '         elif [ -z "$verb" ]; then verb="${COMP_WORDS[i]}"; fi ;;',
            "    esac",
            "  done",
            '  if [ -z "$noun" ]; then',
            f'    COMPREPLY=($(compgen -W "{nouns} --master --user --version --help" -- "$cur")); return',
            "  fi",
            '  case "$noun $verb" in',
            *arms,
            "  esac",
            '  COMPREPLY=($(compgen -W "$words" -- "$cur"))',
            "}",
            "complete -o default -F _det det",
        ]
    )


def _zsh() -> str:
    return "\n".join(["#compdef det", "autoload -U +X bashcompinit && bashcompinit", _bash()])


def _fish() -> str:
    nouns, cases = _cases()
    lines = ["complete -c det -f", f'complete -c det -n __fish_use_subcommand -a "{nouns}"']
    for noun, verb, options in cases:
        plain = " ".join(word for word in options.split() if not word.startswith("-"))
        flags = [word[2:] for word in options.split() if word.startswith("--")]
        seen = f"__fish_seen_subcommand_from {noun}"
        condition = f"{seen}; and __fish_seen_subcommand_from {verb}" if verb else seen
        if plain:
            inner = f"{condition}; and not __fish_seen_subcommand_from {plain}"
            lines.append(f"complete -c det -n '{inner}' -a '{plain}'")
        lines += [f"complete -c det -n '{condition}' -l {flag}" for flag in flags]
        if verb == "create" or (not verb and noun in ("up", "down")):
            lines.append(f"complete -c det -n '{condition}' -F")
    return "\n".join(lines)
