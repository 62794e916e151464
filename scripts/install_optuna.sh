#!/bin/sh
# Optuna, whose search ours is measured against, in an environment of its own. Usage: install_optuna.sh PYTHON FOLDER
set -eu
python=$1 folder=$2
mkdir -p "$(dirname "$folder")"
printf '%s\n' "optuna: optuna==5.0.0 into $folder"
"$python" -m venv "$folder"
"$folder/bin/python" -m pip install -q --disable-pip-version-check optuna==5.0.0
