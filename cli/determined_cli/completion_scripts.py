"""Generates completion scripts. They contain all words; ids come from ``det __complete``."""

from argparse import Namespace

from determined_cli.completion import FILES, Words, words

FILE_OPTIONS = "-o|--output-dir|-i|--include|--data|--python|--task-python|--config"


def run(args: Namespace) -> None:
    """Prints the script for the given shell."""
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell]())


def _arms(noun: str, verbs: list[Words]) -> list[str]:
    """Returns the arms of a case over ``noun verb inner``, each of which sets ``words``, ``flags`` and ``kind``."""
    arms = []
    if verbs[0].path:
        names = " ".join(each.path[0] for each in verbs if len(each.path) == 1)
        arms.append(f'    "{noun}  ") words="{names}" ;;')
    for each in verbs:
        plain = " ".join((*each.inner, *each.values))
        # A star would shadow the arms of inner verbs.
        pattern = f'"{" ".join((noun, *each.path))}' + (' "' if each.inner else '"*' if len(each.path) != 1 else ' "*')
        arms.append(f'    {pattern}) words="{plain}" flags="{" ".join(each.flags)}" kind="{each.kind or ""}" ;;')
    return arms


def _bash() -> str:
    table = dict(words())
    arms = [arm for noun, verbs in table.items() for arm in _arms(noun, verbs)]
    return "\n".join(
        [
            "_det() {",
            '  local cur="${COMP_WORDS[COMP_CWORD]}" noun="" verb="" inner="" i words="" flags="" kind=""',
            "  local options=()",
            "  for ((i = 1; i < COMP_CWORD; i++)); do",
            '    case "${COMP_WORDS[i]}" in',
            '      -m|--master|-u|--user) options+=("${COMP_WORDS[i]}" "${COMP_WORDS[i+1]}"); ((i++)) ;;',
            "      -*) ;;",
            '      *) if [ -z "$noun" ]; then noun="${COMP_WORDS[i]}"',
            '         elif [ -z "$verb" ]; then verb="${COMP_WORDS[i]}"',
            '         elif [ -z "$inner" ]; then inner="${COMP_WORDS[i]}"; fi ;;',
            "    esac",
            "  done",
            "  COMPREPLY=()",
            '  if [ -z "$noun" ]; then',
            f'    COMPREPLY=($(compgen -W "{" ".join(table)} --master --user --version --help" -- "$cur")); return',
            "  fi",
            f'  case "${{COMP_WORDS[COMP_CWORD-1]}}" in {FILE_OPTIONS}) return ;; esac',
            '  case "$noun $verb $inner" in',
            *arms,
            "  esac",
            '  case "$cur" in',
            '    -*) words="$flags" ;;',
            '    *) case "$kind" in',
            f"         {FILES}) return ;;",
            '         "") [ -n "$words" ] && [ -n "$verb" ] && words="$words --help"',
            '             [ -n "$words" ] || words="$flags" ;;',
            '         *) words="$("${COMP_WORDS[0]}" "${options[@]}" __complete "$kind" 2>/dev/null)" ;;',
            "       esac ;;",
            "  esac",
            '  COMPREPLY=($(compgen -W "$words" -- "$cur"))',
            "}",
            "complete -o default -F _det det",
        ]
    )


def _zsh() -> str:
    return "\n".join(["#compdef det", "autoload -U +X bashcompinit && bashcompinit", _bash()])


def _fish() -> str:
    table = dict(words())
    lines = ["complete -c det -f", f'complete -c det -n __fish_use_subcommand -a "{" ".join(table)}"']
    for noun, verbs in table.items():
        seen = f"__fish_seen_subcommand_from {noun}"
        names = " ".join(each.path[0] for each in verbs if len(each.path) == 1)
        if names:
            lines.append(f"complete -c det -n '{seen}; and not __fish_seen_subcommand_from {names}' -a '{names}'")
        for each in verbs:
            condition = "; and ".join([seen, *(f"__fish_seen_subcommand_from {word}" for word in each.path)])
            plain = " ".join((*each.inner, *each.values))
            if plain:
                free = f"{condition}; and not __fish_seen_subcommand_from {plain}"
                lines.append(f"complete -c det -n '{free}' -a '{plain}'")
            lines += [f"complete -c det -n '{condition}' -l {flag[2:]}" for flag in each.flags]
            if each.kind == FILES:
                lines.append(f"complete -c det -n '{condition}' -F")
            elif each.kind:
                lines.append(f"complete -c det -n '{condition}' -a '(det __complete {each.kind})'")
    return "\n".join(lines)
