#!/bin/sh
# What the launchers' end-to-end tests need of Debian beside Python: machines made of network namespaces, and an sshd
# for the one test that wants a real one. No service is started.
set -eu
missing=
command -v ip >/dev/null || missing="$missing iproute2"
command -v sshd >/dev/null || [ -x /usr/sbin/sshd ] || missing="$missing openssh-server"
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "test tools: these are missing and only root can add them:$missing" >&2
    exit 0
fi
printf '%s\n' "test tools: adds the Debian packages$missing"
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    trap 'rm -f "$policy"' EXIT
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
