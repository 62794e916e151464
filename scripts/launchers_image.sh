#!/bin/sh
# Builds the image of the tests that train under deepspeed and horovod in containers, on the default image of tasks:
# launchers_image.sh VENV NAME. Needs what install_launchers.sh has built; the Dockerfile needs no network.
set -eu
venv=$1 name=$2
version=$(sed -n 's/^DETENT_VERSION = "\(.*\)"/\1/p' launch/determined_launch/version.py)
folder=.cache/images/launchers
wheels=.cache/wheels/launchers
built=${DETENT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/detent}/wheels
torch=$("$venv/bin/python" -c 'import torch; print(torch.__version__)')
key=$("$venv/bin/python" -c 'import sys; print(f"py{sys.version_info[0]}.{sys.version_info[1]}")')-torch$torch
rm -rf "$folder"
mkdir -p "$folder/wheels" "$wheels"
"$venv/bin/python" -m pip wheel -q --disable-pip-version-check -c constraints.txt --find-links "$wheels" \
    --find-links .cache/wheels/cpu -w "$wheels" 'deepspeed>=0.19,<0.20' "$built/$key"/horovod-*.whl
for wheel in "$wheels"/*.whl; do
    # The default image holds torch already.
    case $wheel in */torch-*) ;; *) ln "$wheel" "$folder/wheels/" ;; esac
done
cat >"$folder/Dockerfile" <<END
FROM detent/cpu:$version
COPY wheels /wheels
RUN python3 -m pip install --no-cache-dir --no-index --find-links /wheels deepspeed horovod
END
docker build -q -t "$name" "$folder"
