#!/bin/sh
# Debian's Chromium and a font, for the tests of the page. No browser is downloaded from anywhere else.
set -eu
[ ! -x /usr/bin/chromium ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "browser: chromium is missing and only root can add it: apt install chromium fonts-dejavu-core" >&2
    exit 0
fi
echo "browser: adds the Debian packages chromium fonts-dejavu-core"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
