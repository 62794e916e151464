#!/bin/sh
# The official client of 2025, unmodified, in an environment of its own. Usage: install_official.sh PYTHON FOLDER
set -eu
python=$1 folder=$2
mkdir -p "$(dirname "$folder")"
printf '%s\n' "official: determined==0.38.1 into $folder"
"$python" -m venv "$folder"
"$folder/bin/python" -m pip install -q --disable-pip-version-check -U pip 'setuptools<81'
"$folder/bin/python" -m pip install -q --disable-pip-version-check torch==2.13.0 numpy
"$folder/bin/python" -m pip install -q --disable-pip-version-check determined==0.38.1 tensorboard
