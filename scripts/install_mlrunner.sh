#!/bin/sh
# mlrunner, the original of the grid runner that ours is compared with, in an environment of its own.
# Usage: install_mlrunner.sh PYTHON FOLDER
set -eu
python=$1 folder=$2
mkdir -p "$(dirname "$folder")"
printf '%s\n' "mlrunner: mlrunner==0.5.9 into $folder"
"$python" -m venv "$folder"
"$folder/bin/python" -m pip install -q --disable-pip-version-check mlrunner==0.5.9
