#!/bin/sh
# Accounting for the Slurm of slurm.sh, which calls this script: MariaDB and slurmdbd, both reachable on this machine alone.
# Usage: slurm_accounting.sh start|fill FOLDER PORT
#
# `start` starts the two, `fill` adds the account `lab` of root and four qualities of service: normal; low and nograce, which jobs
# of `high` preempt with 20 s of grace and without any. Their pids are in FOLDER/run, where slurm.sh ends them.
set -eu
[ $# = 3 ] || { echo "usage: slurm_accounting.sh start|fill FOLDER PORT" >&2; exit 2; }
verb=$1 folder=$2 port=$3
export SLURM_CONF="$folder/slurm.conf"
runs() { pid=$(cat "$1" 2>/dev/null || true); [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; }

start_database() {
    if runs "$folder/run/mariadb.pid"; then return; fi
    [ -d "$folder/database" ] || mariadb-install-db --no-defaults --user=root --datadir="$folder/database" --skip-test-db \
        --auth-root-authentication-method=socket >"$folder/log/mariadb-install.log" 2>&1
    mariadbd --no-defaults --user=root --datadir="$folder/database" --socket="$folder/database.socket" --skip-networking \
        --pid-file="$folder/run/mariadb.pid" --innodb-buffer-pool-size=64M --innodb-lock-wait-timeout=900 \
        >"$folder/log/mariadb.log" 2>&1 </dev/null &
    tries=0
    until [ -S "$folder/database.socket" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] || { tail -n 20 "$folder/log/mariadb.log" >&2; exit 1; }
        sleep 0.1
    done
}

start_slurmdbd() {
    if runs "$folder/run/slurmdbd.pid"; then return; fi
    cat >"$folder/slurmdbd.conf" <<END
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
DbdHost=$(hostname -s)
DbdAddr=127.0.0.1
DbdPort=$port
SlurmUser=root
PidFile=$folder/run/slurmdbd.pid
LogFile=$folder/log/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm_accounting
END
    chmod 600 "$folder/slurmdbd.conf"
    MYSQL_UNIX_PORT="$folder/database.socket" slurmdbd >"$folder/log/slurmdbd.out" 2>&1 </dev/null
    tries=0
    until sacctmgr --noheader show cluster >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || { tail -n 20 "$folder/log/slurmdbd.log" >&2; exit 1; }
        sleep 0.1
    done
}

start() {
    for program in mariadbd slurmdbd; do
        command -v "$program" >/dev/null || { echo "slurm: $program is missing; on Debian: apt install slurmdbd mariadb-server" >&2; exit 1; }
    done
    start_database
    start_slurmdbd
    add cluster detent-test
}

add() { sacctmgr --immediate add "$@" >>"$folder/log/sacctmgr.log" 2>&1 || true; } # fails for what exists

fill() {
    add account lab Cluster=detent-test Description=lab Organization=lab
    add qos low set GraceTime=20 PreemptMode=cancel
    add qos nograce set PreemptMode=cancel
    add qos high set Preempt=low,nograce Priority=100
    add user root Account=lab DefaultAccount=lab QOS=normal,low,nograce,high
    # Only now jobs of root are accepted.
    sacctmgr --noheader --parsable2 show assoc user=root format=qos | grep -q high || { cat "$folder/log/sacctmgr.log" >&2; exit 1; }
}

case $verb in start) start ;; fill) fill ;; *) echo "slurm: unknown verb $verb" >&2; exit 2 ;; esac
