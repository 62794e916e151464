#!/bin/sh
# MLflow, whose page ours is measured against, in an environment of its own. Usage: install_mlflow.sh PYTHON FOLDER
set -eu
python=$1 folder=$2
mkdir -p "$(dirname "$folder")"
printf '%s\n' "mlflow: mlflow==3.17.2 into $folder"
"$python" -m venv "$folder"
"$folder/bin/python" -m pip install -q --disable-pip-version-check mlflow==3.17.2
