#!/bin/sh
# The official client of 2025, unmodified, in an environment of its own. Usage: install_official.sh PYTHON FOLDER
set -eu
python=$1 folder=$2
mkdir -p "$(dirname "$folder")"
printf '%s\n' "official: determined==0.38.1 into $folder"
"$python" -m venv "$folder"
add() { "$folder/bin/python" -m pip install -q --disable-pip-version-check "$@"; }
add -U pip 'setuptools<81'
# Of torch only what is imported: the rest would take longer than all else here.
add --no-compile torch==2.13.0 numpy
"$folder/bin/python" -c 'import torch._dynamo'
add determined==0.38.1 tensorboard
