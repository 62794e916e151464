#!/bin/sh
# Builds the sdist, the wheel from the sdist, installs the wheel in a fresh environment and runs `det up` from an empty
# folder: what is missing in a package shows here and nowhere else. Usage: wheel_test.sh PYTHON
set -eu
unset PYTHONPATH PYTHONHOME  # what is imported comes from the wheel
python=$1
root=$(pwd)
version=$(sed -n 's/^DETENT_VERSION = "\(.*\)"/\1/p' "$root/launch/determined_launch/version.py")
work=$(mktemp -d)
trap 'test -x "$work/venv/bin/det" && "$work/venv/bin/det" down --now --data "$work/data" >/dev/null 2>&1; rm -rf "$work"' EXIT
"$root/.venv/bin/python" -m build -q --sdist --outdir "$work/sdist" "$root"
"$root/.venv/bin/python" -m build -q --wheel --outdir "$work/wheel" "$(ls -d "$work"/sdist/*.tar.gz)" 2>/dev/null || {
    mkdir "$work/unpacked" && tar -xzf "$work"/sdist/*.tar.gz -C "$work/unpacked"
    "$root/.venv/bin/python" -m build -q --wheel --outdir "$work/wheel" "$work"/unpacked/*
}
if [ -e "$root/webui/package.json" ] && ! "$python" -m zipfile -l "$(ls "$work"/wheel/*.whl)" | grep determined_master/_webui/index.html >/dev/null; then
    echo "wheel: no page in it; make webui builds it" >&2
    exit 1
fi
install() {
    into=$1
    shift
    "$root/.venv/bin/python" -m pip --python "$into/bin/python" install -q --disable-pip-version-check --no-compile "$@"
}
"$python" -m venv --without-pip "$work/venv"
install "$work/venv" -c "$root/constraints.txt" "$work"/wheel/*.whl
mkdir "$work/empty" "$work/context"
cd "$work/empty"
export XDG_CONFIG_HOME="$work/config"
det="$work/venv/bin/det"
case $("$det" --version) in
    *"+detent$version") "$det" --version ;;
    *) echo "wheel: det --version is not $version: $("$det" --version)" >&2; exit 1 ;;
esac
"$work/venv/bin/python" - "$work/venv" <<'PY'
import importlib
import sys

for name in ("determined", "determined_agent", "determined_cli", "determined_launch", "determined_master", "determined_workflows"):
    path = importlib.import_module(name).__file__
    assert path.startswith(sys.argv[1] + "/"), path
PY
"$det" up --detach --port 0 --data "$work/data"
url=$("$det" version --json | "$work/venv/bin/python" -c 'import json, sys; print(json.load(sys.stdin)["master"]["url"])')
cat > "$work/page.py" <<'PY'
"""Reads the page, each file that it names, and the documentation from the master at argv[1]."""
import re
import sys
import urllib.request


def read(path):
    request = urllib.request.Request(sys.argv[1].rstrip("/") + path, headers={"Accept": "text/html"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read().decode()


files = re.findall(r'(?:src|href)="\.?/?(assets/[^"]+)"', read("/"))
assert any(name.endswith(".js") for name in files) and any(name.endswith(".css") for name in files), files
assert all(len(read("/" + name)) > 100 for name in files), files
assert "Detent" in read("/docs/index.html")
print(f"wheel: the page and its {len(files)} files are served, and the documentation")
PY
"$work/venv/bin/python" "$work/page.py" "$url"
cat > "$work/context/run.py" <<'PY'
import determined as det
with det.core.init() as context:
    context.train.report_validation_metrics(steps_completed=1, metrics={"loss": 0.5})
print("trained from the wheel:", det.__file__)
PY
printf '%s\n' 'name: wheel' 'entrypoint: python3 run.py' 'searcher: {name: single, metric: loss}' \
    'hyperparameters: {}' > "$work/context/config.yaml"
"$det" experiment create "$work/context/config.yaml" "$work/context" --follow
"$det" experiment logs 1 | grep "trained from the wheel"
if "$det" experiment logs 1 | grep "trained from the wheel: $root/"; then
    echo "wheel: the task imported the checkout" >&2
    exit 1
fi
# The small wheel is enough to drive a cluster, and brings neither master nor agent.
"$root/.venv/bin/python" -m build -q --wheel --outdir "$work/client-wheel" "$root/client"
"$python" -m venv --without-pip "$work/client"
install "$work/client" -c "$root/constraints.txt" "$work"/client-wheel/*.whl
cat > "$work/drive.py" <<'PY'
import importlib.util
import sys

import determined.core
from determined.experimental import client

config = {"name": "by the SDK", "entrypoint": "python3 run.py", "searcher": {"name": "single", "metric": "loss"}}
experiment = client.create_experiment(config, sys.argv[1])
assert experiment.wait(interval=0.2) is client.ExperimentState.COMPLETED, experiment
assert any("trained from the wheel" in line for line in experiment.list_trials()[0].iter_logs())
found = [name for name in ("determined_master", "determined_agent", "determined_cli") if importlib.util.find_spec(name)]
assert not found, found
print("wheel: driven by detent-client:", experiment)
PY
"$work/client/bin/python" "$work/drive.py" "$work/context"
"$det" down --data "$work/data"
if "$work/venv/bin/python" "$work/page.py" "$url" 2>/dev/null; then
    echo "wheel: a master answers after det down" >&2
    exit 1
fi

# The page of the wheel needs no Node and no network: none of either is there, and a browser sees the list and an
# experiment. A namespace without a network needs root.
chromium=$(command -v chromium-headless-shell || command -v chromium || true)
if [ -z "$chromium" ]; then
    echo "wheel: the page without a network is not looked at: neither chromium-headless-shell nor chromium is here"
elif ! unshare -n ip link set lo up 2>/dev/null; then
    echo "wheel: the page without a network is not looked at: only root can take the network away (unshare -n, ip)"
else
    mkdir "$work/bin" && cp -rs /usr/bin/. "$work/bin" && rm -f "$work/bin/node" "$work/bin/nodejs" "$work/bin/npm" "$work/bin/npx"
    cat > "$work/alone.sh" <<'SH'
set -eu
ip link set lo up
if command -v node || ping -c 1 -W 1 1.1.1.1 >/dev/null 2>&1; then echo "wheel: Node or a network is there" >&2; exit 1; fi
"$1" up --detach --port 0 --data "$2" 2>/dev/null
"$3" "$4" "$("$1" master open)" "$5"
"$1" down --data "$2"
SH
    PATH="$work/bin" unshare -n sh "$work/alone.sh" "$det" "$work/data" "$root/.venv/bin/python" \
        "$root/tests/e2e/web/seen_alone.py" "$chromium"
fi

# Beside the older distribution, in either order of installation, every program of ours stops with the way out.
for order in "ours older" "older ours"; do
    rm -rf "$work/both"
    "$python" -m venv --without-pip "$work/both"
    for which in $order; do
        case $which in
            ours) install "$work/both" --no-deps "$work"/wheel/*.whl ;;
            older) install "$work/both" --no-deps determined==0.38.1 ;;
        esac
    done
    for module in determined_cli determined_master determined_agent; do
        if text=$("$work/both/bin/python" -m "$module" --version 2>&1); then
            echo "wheel: $module ran beside the older distribution ($order)" >&2
            exit 1
        fi
        case $text in
            *"Create a new environment"*) ;;
            *) printf 'wheel: %s (%s) said: %s\n' "$module" "$order" "$text" >&2; exit 1 ;;
        esac
        case $text in *Traceback*) printf '%s\n' "$text" >&2; exit 1 ;; esac
    done
done
echo "wheel: ok"
