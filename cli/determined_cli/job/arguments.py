"""Command table of ``det job``."""

from determined_cli.command import Command, argument, listing, selecting

NOUNS_WITHOUT_VERBS = ()

_RUN = "determined_cli.job.commands"
_DRY_RUN = argument("--dry-run", action="store_true", help="print what would change, and change nothing")

VERBS = (
    Command(
        "list",
        "list jobs that wait or run, in their order",
        f"{_RUN}:list_jobs",
        (
            argument("-rp", "--resource-pool", metavar="POOL", help="the pool (default: the cluster's)"),
            selecting,
            listing,
        ),
        ("ls",),
    ),
    Command(
        "update",
        "change a job's place, priority, weight or pool",
        f"{_RUN}:update",
        (
            argument("job_id", metavar="JOB_ID"),
            argument("-p", "--priority", type=int, metavar="N", help="1 to 99; smaller is more urgent"),
            argument("-w", "--weight", type=float, metavar="W", help="share of the pool, where shares decide"),
            argument("-rp", "--resource-pool", metavar="POOL", help="the pool to move it to"),
            argument("--ahead-of", metavar="JOB_ID", help="move it right ahead of this job"),
            argument("--behind", metavar="JOB_ID", help="move it right behind this job"),
            _DRY_RUN,
        ),
        ("u",),
        examples=("det job update 3f2b7a1c-0d3e-4b55-8f0e-5a5c1d2e3f40 --priority 60",),
    ),
    Command(
        "update-batch",
        "change several jobs, all or none",
        f"{_RUN}:update_batch",
        (
            argument(
                "updates",
                nargs="+",
                metavar="JOB_ID.KEY=VALUE",
                help="KEY is priority, weight, resource-pool, ahead-of or behind",
            ),
            _DRY_RUN,
        ),
        ("ub",),
        examples=("det job update-batch 3f2b7a1c.priority=60 9d1e5c2a.priority=30",),
    ),
)
