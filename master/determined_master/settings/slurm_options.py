"""The options of ``sbatch`` that a pool of type ``slurm`` may set: checks of their names and values. Pure."""

from collections.abc import Mapping

from determined.config.findings import nearest
from determined_workflows.batch import durations

REFUSED = {
    "array": "one job is one pilot, and max_agents says how many there are",
    "clusters": "pilots run on the cluster of Slurm that this machine submits to",
    "comment": "Detent knows its jobs by it",
    "error": "errors of a pilot go to its output file",
    "gid": "pilots run as the account that started the master",
    "help": "it submits nothing",
    "job-name": "Detent names its jobs after their agents",
    "no-requeue": "it is set for all pilots",
    "nodes": "write nodes beside sbatch",
    "ntasks": "a pilot has one agent on each node",
    "ntasks-per-node": "a pilot has one agent on each node",
    "open-mode": "Detent reads the output file of a pilot",
    "output": "Detent reads the output file of a pilot",
    "parsable": "it is set for all pilots",
    "requeue": "Detent submits a new pilot where one is needed",
    "signal": "Detent asks Slurm when a pilot ends, and a signal would end its agent",
    "test-only": "it submits nothing",
    "uid": "pilots run as the account that started the master",
    "usage": "it submits nothing",
    "version": "it submits nothing",
    "wait": "the master follows its jobs",
    "wrap": "the agent is the command",
}
"""Options that Detent sets or relies on, and why."""

_LETTERS = {
    "A": "account",
    "a": "array",
    "b": "begin",
    "C": "constraint",
    "c": "cpus-per-task",
    "d": "dependency",
    "D": "chdir",
    "e": "error",
    "F": "nodefile",
    "G": "gpus",
    "H": "hold",
    "i": "input",
    "J": "job-name",
    "k": "no-kill",
    "L": "licenses",
    "M": "clusters",
    "m": "distribution",
    "N": "nodes",
    "n": "ntasks",
    "o": "output",
    "O": "overcommit",
    "p": "partition",
    "q": "qos",
    "s": "oversubscribe",
    "S": "core-spec",
    "t": "time",
    "W": "wait",
    "w": "nodelist",
    "x": "exclude",
}
_NAMES = """account acctg-freq batch bb bbf begin chdir cluster-constraint constraint container container-id contiguous
core-spec cores-per-socket cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot dependency distribution exclude
exclusive export export-file extra extra-node-info get-user-env gpu-bind gpu-freq gpus gpus-per-node
gpus-per-socket gpus-per-task gres gres-flags hint hold ignore-pbs input kill-on-invalid-dep licenses mail-type
mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus network nice no-kill nodefile nodelist
ntasks-per-core ntasks-per-gpu ntasks-per-socket oom-kill-step overcommit oversubscribe power prefer priority
profile propagate qos quiet reboot reservation resv-ports segment sockets-per-node spread-job stepmgr switches
thread-spec threads-per-core time time-min tmp tres-bind tres-per-task use-min-nodes verbose wait-all-nodes
wckey partition consolidate-segments"""
KNOWN = frozenset(_NAMES.split())
"""The others, of Slurm 22.05 and later versions; it is complete so that a prefix of a refused one is refused too."""

GPU_OPTIONS = ("gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task")
_CPU_OPTIONS = ("cpus-per-task", "cpus-per-gpu", "mincpus", "exclusive")
_INSTEAD_OF = ({"mem", "mem-per-cpu", "mem-per-gpu"}, {"gres", *GPU_OPTIONS}, {"exclusive", "oversubscribe"})
"""Options of which Slurm takes one."""


def normalized(name: str) -> str:
    """Returns the name of an option as ``sbatch`` has it, from any spelling: ``--gpus_per_node`` is gpus-per-node."""
    return name.strip().lstrip("-").replace("_", "-")


def problem(name: str, value: object) -> str | None:
    """Returns why a pool cannot set an option, or None if it can."""
    option = normalized(name)
    if option in _LETTERS:
        return problem(_LETTERS[option], value) or f'"{name}": write the long name, "{_LETTERS[option]}"'
    if option.lower() in REFUSED:
        return f'"{name}" cannot be set here, because this option of sbatch is ours: {REFUSED[option.lower()]}'
    if option not in KNOWN:
        near = nearest(option, [*KNOWN, *REFUSED])
        if near in REFUSED:
            return f'"{name}" is no option of sbatch, and {near} is ours: {REFUSED[near]}'
        return f'"{name}" is no long option of sbatch' + (f'; did you mean "{near}"?' if near else "")
    if isinstance(value, str) and not (value.isprintable() and value):
        return f'the value of "{name}" is one line of text; an option without a value is written {option}: true'
    if option in ("time", "time-min") and not _is_time(str(value)):
        return f'"{name}": {value} is no time limit; write [days-]hours:minutes:seconds, or minutes'
    return None


def _is_time(text: str) -> bool:
    try:
        durations.seconds(text)
    except ValueError:
        return False
    return True


def texts(options: Mapping[str, str | int | bool]) -> dict[str, str | None]:
    """Returns options by their names, None for one without a value. False leaves an option out."""
    return {
        normalized(name): None if value is True else str(value) for name, value in options.items() if value is not False
    }


def merged(site: Mapping[str, str | None], pool: Mapping[str, str | None]) -> dict[str, str | None]:
    """Returns the options of SITE.yaml with those of the pool over them."""
    options = dict(site)
    for name, value in pool.items():
        for group in _INSTEAD_OF:
            if name in group:
                for other in group - {name}:
                    options.pop(other, None)
        options[name] = value
    return options


def has_gpus(options: Mapping[str, str | None]) -> bool:
    """Returns True if a job with these options gets GPUs: its agent then offers those, else CPU slots."""
    gres = (options.get("gres") or "").split(",")
    return any(name in options for name in GPU_OPTIONS) or any(each.split(":")[0] == "gpu" for each in gres)


def of_job(options: Mapping[str, str | None], *, slots: int, nodes: int) -> list[str]:
    """Returns the words of ``sbatch`` for the resources of a pilot. A CPU slot is one CPU, if nothing else is said."""
    words = [f"--nodes={nodes}", "--ntasks-per-node=1"]
    if not has_gpus(options) and not any(name in options for name in _CPU_OPTIONS):
        words.append(f"--cpus-per-task={slots}")
    return words + [f"--{name}" if value is None else f"--{name}={value}" for name, value in options.items()]
