#!/bin/sh
# Makes the environment that everything in this checkout runs in. Usage: install.sh PYTHON VENV
set -eu
python=$1 venv=$2
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "Python 3.11 or newer is needed; $python is $("$python" --version 2>&1). Try: make PYTHON=python3.11 install" >&2
    exit 1
}
"$python" -c 'import venv, ensurepip' 2>/dev/null || {
    echo "$python cannot make environments. On Debian: apt install python3-venv" >&2
    exit 1
}
step() { printf '%s\n' "install: $*"; }
# Most modules of torch are never imported, so each is compiled when it is.
add() { "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile -c constraints.txt "$@"; }
step "an environment in $venv"
"$python" -m venv "$venv"
step "pip"
add -U pip
step "torch (about 200 MB, the slow part)"
add torch==2.13.0 numpy
step "Detent and what it is built and tested with"
add -e '.[azure,dev,docker,gcs,optuna,postgres,s3,ssh,tasks]'
"$venv/bin/python" -c 'import torch._dynamo, torch.utils.tensorboard, requests, ruamel.yaml'
step "done"
