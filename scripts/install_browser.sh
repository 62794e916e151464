#!/bin/sh
# Debian's Chromium and a font, for the tests of the page: the one without parts for a screen, where Debian has it.
# No browser is downloaded from anywhere else.
set -eu
[ ! -x /usr/bin/chromium-headless-shell ] || exit 0
packages="chromium-headless-shell fonts-dejavu-core"
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    [ -x /usr/bin/chromium ] || echo "browser: it is missing and only root can add it: apt install $packages" >&2
    exit 0
fi
echo "browser: adds the Debian packages $packages"
add() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}
apt-get update -qq
# shellcheck disable=SC2086
add $packages || [ -x /usr/bin/chromium ] || add chromium fonts-dejavu-core
