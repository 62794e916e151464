#!/bin/sh
# What tests need of Debian beside Python: machines made of network namespaces and a real sshd for the launchers'
# end-to-end tests, a reverse proxy, a database server, Slurm, and the shells whose completion is tested. No service is started.
# Usage: install_test_tools.sh [long]; long: also Slurm's accounting, which only long tests need.
set -eu
missing=
command -v ip >/dev/null || missing="$missing iproute2"
command -v sshd >/dev/null || [ -x /usr/sbin/sshd ] || missing="$missing openssh-server"
[ -x /usr/sbin/nginx ] || missing="$missing nginx-light"
[ -n "$(ls /usr/lib/postgresql/*/bin/initdb 2>/dev/null)" ] || missing="$missing postgresql"
command -v slurmctld >/dev/null || missing="$missing slurm-wlm"
command -v munged >/dev/null || missing="$missing munge"
if [ "${1:-}" = long ]; then
    command -v slurmdbd >/dev/null || missing="$missing slurmdbd"
    command -v mariadbd >/dev/null || missing="$missing mariadb-server"
fi
for shell in zsh fish; do
    command -v "$shell" >/dev/null || missing="$missing $shell"
done
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
# Without this Debian makes a cluster of its own.
mkdir -p /etc/postgresql-common
conf=/etc/postgresql-common/createcluster.conf
grep -qs '^create_main_cluster' "$conf" || echo 'create_main_cluster = false' >>"$conf"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
