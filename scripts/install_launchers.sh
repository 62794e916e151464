#!/bin/sh
# The real launchers beside Detent: deepspeed from the index, horovod as a wheel that is built here once for each
# (Python, torch, horovod) and kept in the user's cache. Usage: install_launchers.sh VENV
set -eu
venv=$(cd "$1" && pwd) here=$(cd "$(dirname "$0")" && pwd)
horovod=0.28.1
step() { printf '%s\n' "launchers: $*"; }
pip() { "$venv/bin/python" -m pip "$@" -q --disable-pip-version-check; }

step "deepspeed"
pip install --no-compile -c "$here/../constraints.txt" 'deepspeed>=0.19,<0.20'

key=$("$venv/bin/python" -c 'import sys, torch; print(f"py{sys.version_info[0]}.{sys.version_info[1]}-torch{torch.__version__}")')
wheels=${DETENT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/detent}/wheels/$key
if ! ls "$wheels/horovod-$horovod"-*.whl >/dev/null 2>&1; then
    missing=
    for tool in g++ make cmake; do command -v $tool >/dev/null || missing="$missing $tool"; done
    if [ -n "$missing" ]; then
        if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
            echo "launchers: to build horovod these are needed:$missing. On Debian: apt install g++ make cmake" >&2
            exit 1
        fi
        step "adds the Debian packages$missing"
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing >/dev/null
    fi
    step "builds horovod $horovod for $key (about a minute, once)"
    pip install -c "$here/../constraints.txt" setuptools wheel packaging
    built=$(mktemp -d)
    trap 'rm -rf "$built"' EXIT
    # pip's own cache does not know which torch a wheel was built for.
    if ! PATH="$venv/bin:$PATH" HOROVOD_CMAKE="$here/horovod_cmake.sh" MAKEFLAGS="-j$(nproc)" \
        HOROVOD_WITH_PYTORCH=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITHOUT_MPI=1 \
        HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1 \
        "$venv/bin/python" -m pip wheel --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation \
        --no-binary horovod -w "$built" "horovod==$horovod" >"$built/log" 2>&1; then
        tail -40 "$built/log" >&2
        exit 1
    fi
    mkdir -p "$wheels"
    mv "$built/horovod-$horovod"-*.whl "$wheels/"
fi
step "horovod $horovod"
pip install -c "$here/../constraints.txt" "$wheels/horovod-$horovod"-*.whl
step "done"
