"""Generates completion scripts. They contain all words; ids come from ``det __complete``."""

from argparse import Namespace

from determined_cli.completion.command_words import FILES, Words, words

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
            '  local cur noun="" verb="" inner="" i word words="" flags="" kind="" line="$COMP_LINE" last=-1',
            "  local options=() typed=()",
            # Bash cuts words at ":" and "=" too, such as http://host:8080.
            "  for ((i = 0; i <= COMP_CWORD; i++)); do",
            '    word="${COMP_WORDS[i]}"',
            '    if [ "$last" -lt 0 ] || [ -z "$COMP_LINE" ] || [[ "$line" == [[:space:]]* ]]; then',
            '      ((last += 1)); typed[last]="$word"',
            '    else typed[last]="${typed[last]}$word"; fi',
            '    line="${line#"${line%%[![:space:]]*}"}"',
            '    line="${line#"$word"}"',
            "  done",
            '  cur="${typed[last]}"',
            "  for ((i = 1; i < last; i++)); do",
            '    case "${typed[i]}" in',
            '      -m|--master|-u|--user) options+=("${typed[i]}" "${typed[i+1]}"); ((i++)) ;;',
            '      --master=*|--user=*) options+=("${typed[i]}") ;;',
            "      -*) ;;",
            '      *) if [ -z "$noun" ]; then noun="${typed[i]}"',
            '         elif [ -z "$verb" ]; then verb="${typed[i]}"',
            '         elif [ -z "$inner" ]; then inner="${typed[i]}"; fi ;;',
            "    esac",
            "  done",
            "  COMPREPLY=()",
            '  if [ -z "$noun" ]; then',
            f'    COMPREPLY=($(compgen -W "{" ".join(table)} --master --user --version --help" -- "$cur")); return',
            "  fi",
            f'  case "${{typed[last-1]}}" in {FILE_OPTIONS}) return ;; esac',
            '  case "$noun $verb $inner" in',
            *arms,
            "  esac",
            '  case "$cur" in',
            '    -*) words="$flags" ;;',
            '    *) case "$kind" in',
            f"         {FILES}) return ;;",
            '         "") [ -n "$words" ] && [ -n "$verb" ] && words="$words --help"',
            '             [ -n "$words" ] || words="$flags" ;;',
            # Not by compgen, which would run what a name of somebody else says.
            "         *) while IFS= read -r word; do",
            '              [[ "$word" == "$cur"* ]] && COMPREPLY+=("$word")',
            '            done < <("${typed[0]}" "${options[@]}" __complete "$kind" 2>/dev/null); return ;;',
            "       esac ;;",
            "  esac",
            '  COMPREPLY=($(compgen -W "$words" -- "$cur"))',
            "}",
            "complete -o default -F _det det",
        ]
    )


def _zsh() -> str:
    return "\n".join(["#compdef det", "autoload -U +X bashcompinit && bashcompinit", _bash()])


_FISH_FUNCTIONS = """\
function __det_typed -a what
    # The words before the cursor without options, or the options that name the master and the user.
    set -l skip 0
    for word in (commandline -opc)[2..]
        if test $skip = 1
            set skip 0
            test $what = options; and echo $word
        else if contains -- $word -m --master -u --user
            set skip 1
            test $what = options; and echo $word
        else if test $what = words; and not string match -q -- '-*' $word
            echo $word
        end
    end
end
function __det_at
    set -l typed (__det_typed words)
    test "$typed" = "$argv"
end
function __det_in
    set -l typed (__det_typed words)
    set -l number (count $argv)
    test (count $typed) -ge $number; and test "$typed[1..$number]" = "$argv"
end
function __det_ids
    det (__det_typed options) __complete $argv 2>/dev/null
end"""


def _fish() -> str:
    table = dict(words())
    lines = [_FISH_FUNCTIONS, "complete -c det -f", f'complete -c det -n __det_at -a "{" ".join(table)}"']
    lines += [f"complete -c det -n __det_at -l {name}" for name in ("master -x", "user -x", "version", "help")]
    for noun, verbs in table.items():
        names = " ".join(each.path[0] for each in verbs if len(each.path) == 1)
        if names:
            lines.append(f"complete -c det -n '__det_at {noun}' -a '{names}'")
        for verb in verbs:
            place = " ".join((noun, *verb.path))
            plain = " ".join((*verb.inner, *verb.values))
            if plain:
                lines.append(f"complete -c det -n '__det_at {place}' -a '{plain}'")
            lines += [f"complete -c det -n '__det_in {place}' -l {flag[2:]}" for flag in verb.flags]
            if verb.kind == FILES:
                lines.append(f"complete -c det -n '__det_in {place}' -F")
            elif verb.kind:
                lines.append(f"complete -c det -n '__det_in {place}' -a '(__det_ids {verb.kind})'")
    return "\n".join(lines)
