#!/bin/sh
# One Slurm on this machine, for tests: munge, slurmctld and a few slurmd, all on 127.0.0.1 and without systemd. Root only.
# Usage: slurm.sh up|down FOLDER
#
# `up` prints the path of slurm.conf, which clients read from SLURM_CONF; it does nothing where everything runs already. FOLDER
# holds configuration, keys, sockets, logs and pids; `down` cancels the jobs, ends the daemons and removes FOLDER.
# SLURM_NODES (2) nodes; SLURM_PORT (26817) is the controller's port, those of the nodes follow. Each node claims 256 CPUs and
# eight GPUs, so that jobs written for a large cluster are placed; the GPUs are copies of /dev/null. Partitions: compute (the
# default), short (limit of five minutes), down; grace and nograce, whose jobs give way to those of high, after 20 s or at once.
# SLURM_MACHINES: network namespaces for the nodes, each `NAMESPACE=ADDRESS=HOSTNAME`; SLURM_ADDRESS (127.0.0.1) is the address
# at which they reach the controller. SLURM_NODE_TIMEOUT (60): seconds after which a node that does not answer is down.
# SLURM_ACCOUNTING=1: with slurmdbd, and preemption by quality of service in place of partitions; see slurm_accounting.sh.
set -eu
usage() { echo "usage: slurm.sh up|down FOLDER" >&2; exit 2; }
[ $# = 2 ] || usage
verb=$1
nodes=${SLURM_NODES:-2} port=${SLURM_PORT:-26817} address=${SLURM_ADDRESS:-127.0.0.1} node_timeout=${SLURM_NODE_TIMEOUT:-60} accounting=${SLURM_ACCOUNTING:-}
[ "$(id -u)" = 0 ] || { echo "slurm: only root can start one" >&2; exit 1; }
[ "$verb" = down ] || mkdir -p "$2"
[ -d "$2" ] || exit 0
folder=$(cd "$2" && pwd)
mark="$folder/made-by-slurm.sh"
export SLURM_CONF="$folder/slurm.conf"

# A daemon that ends removes its file between two looks.
runs() { pid=$(cat "$1" 2>/dev/null || true); [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; }

any_runs() {
    for pidfile in "$folder"/run/*.pid; do
        if runs "$pidfile"; then return 0; fi
    done
    return 1
}

# Waits up to 10 s for the end of every daemon.
ended() {
    tries=0
    while any_runs; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || return 1
        sleep 0.1
    done
}

down() {
    [ -e "$mark" ] || { echo "slurm: $folder is not a folder that slurm.sh made; nothing was removed" >&2; exit 1; }
    # Daemons that end leave the processes of running jobs behind.
    if runs "$folder/run/slurmctld.pid"; then
        timeout 10 scancel --full --signal=KILL --user=root >/dev/null 2>&1 || true
        tries=0
        while [ -n "$(timeout 5 squeue --noheader 2>/dev/null)" ] && [ "$tries" -lt 50 ]; do
            tries=$((tries + 1))
            sleep 0.1
        done
    fi
    for pidfile in "$folder"/run/*.pid; do
        ! runs "$pidfile" || kill "$pid" 2>/dev/null || true
    done
    # A slurmd that never reached its controller ignores TERM for minutes.
    ended || for pidfile in "$folder"/run/*.pid; do
        ! runs "$pidfile" || kill -9 "$pid" 2>/dev/null || true
    done
    rm -rf "$folder"
}

start_munge() {
    if runs "$folder/run/munged.pid"; then return; fi
    [ -s "$folder/munge/key" ] || { dd if=/dev/urandom of="$folder/munge/key" bs=1024 count=1 2>/dev/null; chmod 400 "$folder/munge/key"; }
    # --force: the folder may lie below one that others may write to, such as /tmp.
    munged --force --key-file "$folder/munge/key" --socket "$folder/munge/socket" --pid-file "$folder/run/munged.pid" \
        --seed-file "$folder/munge/seed" --log-file "$folder/log/munged.log" >"$folder/log/munged.out" 2>&1 </dev/null
}

write_configuration() {
    host=$(hostname -s) local_only="CommunicationParameters=NoInAddrAny,NoCtldInAddrAny"
    [ "$address" = 127.0.0.1 ] || local_only=""  # the controller would listen on the address of its name
    preemption=preempt/partition_prio storage=AccountingStorageType=accounting_storage/none
    if [ -n "$accounting" ]; then
        preemption=preempt/qos
        storage="AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$((port + 9))
AccountingStoragePass=$folder/munge/socket
AccountingStorageEnforce=associations,limits,qos"
    fi
    cat >"$folder/slurm.conf" <<END
ClusterName=detent-test
SlurmctldHost=$host($address)
SlurmctldPort=$port
$local_only
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PreemptType=$preemption
PreemptMode=CANCEL
GresTypes=gpu
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0,batch_sched_delay=0,requeue_delay=0
KillWait=5
CompleteWait=0
MinJobAge=300
InactiveLimit=0
Waittime=0
ReturnToService=2
SlurmdTimeout=$node_timeout
SlurmctldTimeout=60
MessageTimeout=20
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/slurmd.%n.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.%n.log
$storage
JobCompType=jobcomp/filetxt
JobCompLoc=$folder/log/jobs.txt
END
    each_node write_node
    cat >>"$folder/slurm.conf" <<END
PartitionName=DEFAULT Nodes=ALL MaxTime=INFINITE State=UP PreemptMode=OFF
PartitionName=compute Default=YES
PartitionName=short MaxTime=5
PartitionName=down State=DOWN
PartitionName=grace PreemptMode=CANCEL GraceTime=20
PartitionName=nograce PreemptMode=CANCEL
PartitionName=high PriorityTier=10
END
    # Slurm takes character devices alone for GPUs.
    gpu=0
    while [ "$gpu" -lt 8 ]; do
        [ -c "$folder/gpu$gpu" ] || mknod "$folder/gpu$gpu" c 1 3
        gpu=$((gpu + 1))
    done
    echo "Name=gpu File=$folder/gpu[0-7]" >"$folder/gres.conf"
    echo "CgroupAutomount=no" >"$folder/cgroup.conf"
}

each_node() {
    node=1
    while [ "$node" -le "$nodes" ]; do
        "$1"
        node=$((node + 1))
    done
}

# Sets namespace, node_address and node_host of the node.
find_machine() {
    namespace="" node_address=127.0.0.1 node_host=$(hostname -s)
    machine=$(echo "${SLURM_MACHINES:-}" | cut -s -d ' ' -f "$node")
    [ -n "$machine" ] || return 0
    namespace=${machine%%=*} node_host=${machine##*=}
    node_address=${machine#*=} node_address=${node_address%%=*}
}

write_node() {
    find_machine
    echo "NodeName=node$node NodeHostname=$node_host NodeAddr=$node_address Port=$((port + node)) CPUs=256 RealMemory=1048576" \
        "Gres=gpu:8 State=UNKNOWN" >>"$folder/slurm.conf"
}

# Each daemon has output files of its own: one that inherits a pipe keeps its reader waiting for ever.
start_node() {
    mkdir -p "$folder/spool/node$node"
    if runs "$folder/run/slurmd.node$node.pid"; then return; fi
    find_machine
    set -- slurmd -N "node$node"
    # `ip netns exec` would hide /sys/fs/cgroup, without which slurmd ends.
    [ -z "$namespace" ] || set -- nsenter "--net=/run/netns/$namespace" unshare --uts --mount \
        sh -c 'hostname "$1" && mount --bind "/etc/netns/$0/hosts" /etc/hosts && shift && exec "$@"' "$namespace" "$node_host" "$@"
    "$@" >"$folder/log/slurmd.node$node.out" 2>&1 </dev/null
}

up() {
    for program in munged slurmctld slurmd; do
        command -v "$program" >/dev/null || { echo "slurm: $program is missing; on Debian: apt install slurm-wlm munge" >&2; exit 1; }
    done
    # The sockets of job steps, spool/node1/node1_<job>.4294967291, have at most 107 characters.
    if [ "${#folder}" -gt 70 ]; then
        rmdir "$folder" 2>/dev/null || true
        echo "slurm: $folder has more than 70 characters; Slurm cannot make its sockets below it" >&2
        exit 1
    fi
    touch "$mark"
    mkdir -p "$folder/run" "$folder/log" "$folder/munge" "$folder/state" "$folder/spool"
    start_munge
    [ -e "$folder/slurm.conf" ] || write_configuration
    [ -z "$accounting" ] || sh "$(dirname "$0")/slurm_accounting.sh" start "$folder" "$((port + 9))"
    runs "$folder/run/slurmctld.pid" || slurmctld >"$folder/log/slurmctld.out" 2>&1 </dev/null
    each_node start_node
    tries=0
    # sinfo waits long for a controller that is away.
    until [ "$(timeout 5 sinfo --noheader --Node --partition=compute --states=idle,mixed,allocated --format=%N 2>/dev/null | wc -l)" -ge "$nodes" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] || { echo "slurm: the nodes did not become idle" >&2; tail -n 20 "$folder"/log/* >&2; exit 1; }
        sleep 0.1
    done
    [ -z "$accounting" ] || sh "$(dirname "$0")/slurm_accounting.sh" fill "$folder" "$((port + 9))"
    echo "$SLURM_CONF"
}

case $verb in up) up ;; down) down ;; *) usage ;; esac
