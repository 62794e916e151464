"""``det experiment continue``: runs an experiment that has ended further, with some settings changed."""

from argparse import Namespace

from determined.client import submissions
from determined.errors import BadRequest
from determined_cli import connection
from determined_cli.experiment.create import Configuration, as_config_error, changed, config_text


def continue_(args: Namespace) -> int:
    """Continues the experiment. With ``--follow`` returns the exit code of following it."""
    written = Configuration("--config", "")
    if args.config_file:
        written = config_text(args.config_file, args.config)
    elif args.config:
        written = changed("--config", "{}", args.config)
    session = connection.connect(args.options)
    try:
        submissions.continue_experiment(session, args.experiment_id, written.text)
    except BadRequest as error:
        raise as_config_error(error, written) from None
    print(f"Continued experiment {args.experiment_id}", flush=True)
    if not args.follow:
        return 0
    from determined_cli.experiment.follow import follow

    return follow(session, args.experiment_id)
