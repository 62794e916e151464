"""``det preview-search``: brackets, rungs and numbers of trials of a configuration, without a master."""

from argparse import Namespace
from typing import Any

from determined_cli.command import Command, argument, listing

NOUNS_WITHOUT_VERBS = ("preview-search",)
LENGTHS = (("Trials", "trials"), ("Trained for", "length"))
BRACKETS = (("Bracket", "bracket"), ("Trials", "trials"), ("At once", "concurrent"), ("Rungs", "rungs"))


def run(args: Namespace) -> None:
    """Prints how many trials train how long; of a search with rungs also its brackets."""
    from determined.config.search_plan import HALVING, IN_TASK, brackets, planned_lengths, training_time
    from determined_cli.experiment.create import checked_config, config_text
    from determined_cli.output import render
    from determined_cli.terminal.messages import say

    checked = checked_config(config_text(args.config_file, args.config)).config
    assert checked is not None
    config = checked.to_json()
    searcher = config["searcher"]
    if searcher["name"] in IN_TASK:
        say(
            f"{searcher['name']} decides in a task which trials run, so only the limit is known: at most "
            f"{searcher['max_trials']} trials (max_trials)"
        )
    has_length = searcher["name"] in HALVING or searcher.get("max_length") is not None
    unit = training_time(searcher).unit if has_length else ""
    lengths = planned_lengths(config)
    rows: list[dict[str, Any]] = [
        {"trials": number, "length": "as long as their code does" if length is None else f"{length} {unit}"}
        for number, length in lengths
    ]
    planned = brackets(searcher) if searcher["name"] in HALVING else ()
    described: list[dict[str, Any]] = [
        {"bracket": number, "trials": each.trials, "concurrent": each.concurrent, "rungs": list(each.units)}
        for number, each in enumerate(planned, 1)
    ]
    if args.format in ("json", "yaml"):
        plain = [{"trials": number, "length": length} for number, length in lengths]
        values = {"searcher": searcher["name"], "unit": unit, "brackets": described, "lengths": plain}
        render.show_object(args.format, values)
        return
    if planned and args.format == "table":
        rungs = [{**each, "rungs": f"{', '.join(map(str, each['rungs']))} {unit}"} for each in described]
        render.show("table", BRACKETS, rungs)
        print()
    render.show(args.format, LENGTHS, rows)
    if planned and args.format == "table":
        say(f"at each rung about 1 trial of {searcher['divisor']:g} trains on; results are compared as they come")


VERBS = (
    Command(
        "preview-search",
        "print how many trials of a configuration train how long",
        "determined_cli.preview_search:run",
        (
            argument("config_file", metavar="CONFIG", help="configuration file (YAML); - reads standard input"),
            argument(
                "--config",
                action="append",
                default=[],
                metavar="KEY=VALUE",
                help="override a setting, for example searcher.max_trials=64 (repeatable)",
            ),
            listing,
        ),
    ),
)
