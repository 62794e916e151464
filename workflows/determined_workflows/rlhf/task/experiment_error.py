"""The error of an experiment that cannot run."""


class ExperimentError(ValueError):
    """An experiment that cannot run. Its text has one sentence for each fault; ``problems`` is the list of them."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
