#!/bin/sh
# Runs a part of the tests with the lowest or the newest versions that pyproject.toml allows.
# Usage: dependency_bounds.sh lowest|newest PYTHON VENV
set -eu
bound=$1
python=$2
venv=$3
root=$(pwd)
rm -rf "$venv"
"$python" -m venv "$venv"
"$python" - "$bound" > "$venv/bound.txt" <<'PY'
import re
import sys
import tomllib

project = tomllib.load(open("pyproject.toml", "rb"))["project"]
wanted = project["dependencies"]
if sys.argv[1] == "newest":  # extras too, of which private parts are used
    wanted += project["optional-dependencies"]["docker"] + project["optional-dependencies"]["hydra"]
for line in wanted:
    print(re.sub(r">=\s*([^,]+).*", r"==\1", line) if sys.argv[1] == "lowest" else line)
PY
# pins of what is not a dependency of its own hold here too, so that only the bounds are on trial
grep -viE "^($(sed -E 's/(\[.*)?[=<>].*//' "$venv/bound.txt" | paste -sd '|'))==" constraints.txt > "$venv/others.txt"
# of antlr4, which Hydra needs, there is no wheel
"$venv/bin/python" -m pip install -q --only-binary :all: --no-binary antlr4-python3-runtime -r "$venv/bound.txt"
"$venv/bin/python" -m pip install -q --no-deps -e "$root"
"$venv/bin/python" -m pip install -q -c "$venv/others.txt" docker hypothesis 'psycopg[binary]' pytest pytest-asyncio pytest-timeout pytest-xdist
set -- tests/master tests/cli tests/harness/config tests/harness/context tests/harness/client tests/agent tests/integration \
    tests/statements
if [ "$bound" = newest ]; then
    "$venv/bin/python" -m pip install -q -c "$venv/others.txt" hydra-submitit-launcher submitit
    "$venv/bin/python" -m pip list --format freeze | grep -iE "^($(sed -E 's/(\[.*)?[=<>].*//' "$venv/bound.txt" | paste -sd '|'))=="
    set -- "$@" tests/workflows/hydra
fi
# RLHF experiments import torch, which is not among these dependencies
"$venv/bin/python" -m pytest -q -n 2 -p no:cacheprovider -m "not long and not torch" --ignore tests/cli/test_rlhf.py "$@"
