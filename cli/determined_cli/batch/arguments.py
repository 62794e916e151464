"""Command table of ``det batch``."""

from determined_cli.command import YES, Command, argument
from determined_cli.workflow_verbs import DRY_RUN, FOLLOW, Targets, complete

NOUNS_WITHOUT_VERBS = ()

_SUBMIT, _JOBS = "determined_cli.batch.submit", "determined_cli.batch.jobs"
_PROJECT = argument(
    "--project", metavar="FOLDER", help="root of the project (default: the working folder, or the one above hpc_files)"
)
_TARGET = argument(
    "target", nargs="?", metavar="JOB", help="id of a job, or name of a submission (default: the newest)"
)
_TARGET_OR_ALL = argument(
    "target", nargs="?", metavar="JOB", help="id of a job, or name of a submission (default: all)"
)
_SITE = argument(
    "--site", metavar="FILE", help="another SITE.yaml than that of the project, of $DET_SITE, or of the site"
)
_JOB = (
    argument("-j", "--job-type", "--job_type", dest="kind", metavar="KIND", help="standard, distributed or sweep"),
    argument(
        *("-W", "--which-distributed", "--which_distributed"),
        dest="launcher",
        metavar="NAME",
        help="launcher of a distributed job: torchrun or lightning",
    ),
    argument("-g", "--gpus", metavar="N", help="GPUs of each node (default: 0; of a sweep: 1)"),
    argument("-c", "--cpus", "--cpu", metavar="N", help="CPUs of each task (default: 2)"),
    argument(
        *("-N", "-n", "--nodes", "--num-nodes", "--num_nodes"),
        dest="nodes",
        metavar="N",
        help="nodes of a distributed job (default: 1)",
    ),
    argument("-t", "--time", metavar="dd-HH:MM:SS", help="time limit (default: 00-01:00:00)"),
    argument("-m", "--mem", dest="memory", metavar="SIZE", help="memory of each node (default: 10G)"),
    argument(
        "--mem-per-gpu", "--mem_per_gpu", dest="memory_per_gpu", metavar="SIZE", help="memory for each GPU instead"
    ),
    argument("-G", "--gpu-type", "--gpu_type", metavar="TYPE", help="type of the GPUs, as Slurm names it"),
    argument(
        "-p",
        "--partition",
        metavar="NAME",
        help="partition (default: that of Slurm); with --on det, a pool of the cluster",
    ),
    argument("-a", "--account", metavar="NAME", help="account that is charged"),
    argument("-e", "--exp-name", "--exp_name", metavar="NAME", help="name of the experiment, part of file names"),
    argument("-d", "--data", nargs="+", metavar="PATH", help="data for the disk of each node, below SCRATCH/PROJECT"),
    argument(
        *("-s", "--singularity-container", "--singularity_container"),
        dest="container",
        metavar="IMAGE",
        help="run in this image of Apptainer or Singularity",
    ),
    argument("-w", "--workdir", metavar="FOLDER", help="working folder of the program (default: the project)"),
    argument("-C", "--configs", metavar="FILE", help="file with the command (default: that in hpc_files)"),
    argument("--nodes-argument", metavar="NAME", help="appended argument of Lightning: nnodes (default) or num_nodes"),
    argument(
        "--requeue", action="store_true", help="queue the job again before its time limit; USR1 says it to the program"
    ),
)
_SWEEP = (
    argument(
        *("--sweep-id", "--wandb-sweepid"),
        dest="sweep_id",
        metavar="ID",
        help="sweep of Weights & Biases (default: asked)",
    ),
    argument("--count", metavar="N", help="runs of the sweep (default: asked, with the size of the grid)"),
    argument("--max-parallel", "--max_parallel", metavar="N", help="runs of the sweep at a time"),
)
_BUILD_HERE = argument("--build-here", action="store_true", help="build the environment on this machine, not in a job")
_SBATCH_WORDS = argument("sbatch_words", nargs="*", metavar="-- OPTION", help="options of sbatch, as typed")
_CLUSTER = (
    argument(
        "--searcher",
        metavar="NAME",
        help="with --on det, search over the parameters of sweeper.yml: random, grid, adaptive_asha, …",
    ),
    argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="with --on det, a setting of the experiment: max_restarts=3 (repeatable)",
    ),
    argument("--paused", action="store_true", help="with --on det, create it paused"),
)

_COMMANDS = (
    Command(
        "init",
        "write hpc_files with a command file and job_submitter.sh",
        f"{_SUBMIT}:init",
        (_PROJECT,),
    ),
    Command(
        "check",
        "print the job script and its options; submit nothing",
        f"{_SUBMIT}:check",
        (*_JOB, *_SWEEP, _PROJECT, _SITE, _SBATCH_WORDS),
        examples=("det batch check -j distributed -W lightning -N 2 -g 4",),
    ),
    Command(
        "run",
        "submit the command of the command file as a job",
        f"{_SUBMIT}:run",
        (*_JOB, *_SWEEP, _PROJECT, _SITE, _BUILD_HERE, *_CLUSTER, YES, DRY_RUN, _SBATCH_WORDS),
        examples=(
            "det batch run --gpus 1 --exp-name testing",
            "det batch run -j distributed -W torchrun -N 2 -g 4 --time 02:00:00",
            "det batch run -j sweep --sweep-id ab12 --count 8 --max-parallel 2 -y",
            "det batch run -g 1 -- --qos=high --mail-type=END",
        ),
    ),
    Command(
        "status",
        "list submissions with the states of their jobs",
        f"{_JOBS}:status",
        (_TARGET_OR_ALL, _PROJECT, _SITE, argument("--json", action="store_true", help="print JSON")),
    ),
    Command(
        "logs",
        "print the output of a job",
        f"{_JOBS}:show_logs",
        (
            _TARGET,
            FOLLOW,
            argument("--element", type=int, metavar="N", help="this run of a sweep only"),
            _PROJECT,
            _SITE,
        ),
        aliases=("attach",),
        alias_words={"attach": ("--follow",)},
    ),
    Command("stop", "cancel what is left of a submission", f"{_JOBS}:stop", (_TARGET, _PROJECT, _SITE)),
    Command(
        "retry",
        "submit again what has failed, with the same arguments",
        f"{_JOBS}:retry",
        (_TARGET, _PROJECT, _SITE, DRY_RUN),
    ),
)
VERBS = complete("batch", _COMMANDS, Targets(default={"run": "slurm", "retry": None}))
