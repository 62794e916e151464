"""A program that tells which lines a regular expression finds: apart, so that one that never ends can be ended.

Reads a JSON text, the expression, and then lists of texts, one a line; answers each with one line: null or what is
wrong with the expression, then the places of the texts in which it is found. Standard library alone, without ``site``.
"""

import json
import re
import resource
import sys

CPU_SECONDS = 10
"""Should the one who started it be gone."""


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    try:
        find = re.compile(json.loads(sys.stdin.readline())).search
    except (re.error, OverflowError, RecursionError) as error:
        _answer(str(error) or type(error).__name__)
        return
    _answer(None)
    for line in sys.stdin:
        _answer([place for place, text in enumerate(json.loads(line)) if find(text)])


def _answer(value: object) -> None:
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    main()
