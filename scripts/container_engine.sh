#!/bin/sh
# Docker, docker-compose and Podman from Debian, for the tests of containers: installs them where they are missing, starts Docker where
# it does not run, and makes a small base image without any registry. Usage: container_engine.sh FOLDER [VENV]
#
# FOLDER keeps the log, the engine's pid and the root file system of the base image. With VENV the default image of tasks
# is built on the base image. Does nothing the second time, and nothing but saying so where the user is not root.
set -eu
folder=$1
image=${DETENT_BASE_IMAGE:-detent-base:bookworm}
[ "$(id -u)" = 0 ] || { echo "container engine: only root can start one; the tests of containers are skipped" >&2; exit 0; }
mkdir -p "$folder"
unset DOCKER_HOST DOCKER_CONTEXT

missing=
[ -x /usr/sbin/dockerd ] || missing="$missing docker.io containerd runc iptables"
command -v tini >/dev/null || missing="$missing tini"
command -v mmdebstrap >/dev/null || missing="$missing mmdebstrap"
command -v docker-registry >/dev/null || missing="$missing docker-registry"
command -v docker-compose >/dev/null || missing="$missing docker-compose"
command -v podman >/dev/null || missing="$missing podman"
if [ -n "$missing" ]; then
    echo "container engine: adds the Debian packages$missing"
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod +x "$policy"
        trap 'rm -f "$policy"' EXIT
    fi
    apt-get update -qq
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >"$folder/apt.log" 2>&1 ||
        { tail -20 "$folder/apt.log" >&2; exit 1; }
fi

answers() { docker info >/dev/null 2>&1; }
if ! answers; then
    pidfile=/var/run/docker.pid
    # An engine that was killed leaves its pid file, with which no other starts.
    if [ -f "$pidfile" ] && ! kill -0 "$(cat "$pidfile")" 2>/dev/null; then rm -f "$pidfile"; fi
    # Its own output: a daemon that keeps a pipe open would hang whoever reads it.
    setsid nohup dockerd --host unix:///var/run/docker.sock --storage-driver overlay2 --live-restore \
        >>"$folder/dockerd.log" 2>&1 </dev/null &
    tries=0
    until answers; do
        tries=$((tries + 1))
        [ "$tries" -lt 240 ] || { tail -30 "$folder/dockerd.log" >&2; exit 1; }
        sleep 0.25
    done
fi

make_base() {
    authorities=/etc/ssl/certs/ca-certificates.crt
    if [ ! -s "$folder/base.tar" ]; then
        echo "container engine: makes the base image $image"
        rm -rf "$folder/part.tar"
        # The name has to end in .tar. Programs inside trust whom this machine trusts.
        mmdebstrap --quiet --variant=minbase --include=python3,python3-venv,python3-pip,ca-certificates,bash,procps,tini \
            --customize-hook="upload $authorities $authorities" bookworm "$folder/part.tar"
        mv "$folder/part.tar" "$folder/base.tar"
    fi
    docker import --change 'CMD ["/bin/bash"]' \
        --change "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 SSL_CERT_FILE=$authorities PIP_CERT=$authorities REQUESTS_CA_BUNDLE=$authorities" \
        "$folder/base.tar" "$image" >/dev/null
}
docker image inspect "$image" >/dev/null 2>&1 || make_base
[ $# -lt 2 ] || DETENT_BASE_IMAGE=$image sh scripts/images.sh "$2"
