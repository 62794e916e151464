#!/bin/sh
# Runs a part of the tests with the lowest versions that pyproject.toml allows. Usage: lowest_versions.sh PYTHON VENV
set -eu
python=$1
venv=$2
root=$(pwd)
rm -rf "$venv"
"$python" -m venv "$venv"
"$python" - > "$venv/lowest.txt" <<'PY'
import re
import tomllib

for line in tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]:
    print(re.sub(r">=\s*([^,]+).*", r"==\1", line))
PY
# pins of what is not a dependency of its own hold here too, so that only the bounds are on trial
grep -viE "^($(sed -E 's/(\[.*)?==.*//' "$venv/lowest.txt" | paste -sd '|'))==" constraints.txt > "$venv/others.txt"
"$venv/bin/python" -m pip install -q --only-binary :all: -r "$venv/lowest.txt"
"$venv/bin/python" -m pip install -q --no-deps -e "$root"
"$venv/bin/python" -m pip install -q -c "$venv/others.txt" docker hypothesis 'psycopg[binary]' pytest pytest-asyncio pytest-timeout pytest-xdist
"$venv/bin/python" -m pytest -q -n 2 -p no:cacheprovider -m "not long and not torch" \
    tests/master tests/cli tests/harness/config tests/harness/context tests/harness/client tests/agent tests/integration \
    tests/statements
