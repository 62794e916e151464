"""The options of ``sbatch`` for a job, each with its origin: they are shown, confirmed, and written into the script."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from determined.errors import ConfigError
from determined_workflows.batch import durations
from determined_workflows.batch.settings import JobSettings

DEFAULT, FLAG, TYPED = "default", "flag", "after --"
SIGNAL_SECONDS = 90
_LETTERS = (
    "A=account p=partition t=time N=nodes n=ntasks c=cpus-per-task G=gpus C=constraint q=qos w=nodelist x=exclude "
    "J=job-name o=output e=error d=dependency L=licenses D=chdir a=array H=hold k=no-kill b=begin s=oversubscribe "
    "M=clusters W=wait m=distribution S=core-spec i=input"
)
_LONG = {letter: name for letter, _, name in (pair.partition("=") for pair in _LETTERS.split(" "))}
_OF_VARIABLE = {"timelimit": "time", "mem-per-node": "mem", "array-inx": "array"}
_NO_OPTIONS = ("SBATCH_DEBUG", "SBATCH_GET_USER_ENV", "SBATCH_IGNORE_PBS", "SBATCH_CONF")
_INSTEAD_OF = ({"mem", "mem-per-cpu", "mem-per-gpu"}, {"gres", "gpus-per-node", "gpus"}, {"requeue", "no-requeue"})
"""Options of which Slurm takes one."""
REFUSED = {
    "comment": "det batch knows its jobs by it",
    "array": "--job-type sweep with --count N makes an array",
    "wrap": "the command is in the command file",
    "output": "output files have the names that ammunk/hpc gives them; see `det batch logs`",
    "error": "errors go to the output file",
    "chdir": "use --workdir",
    "parsable": "det batch prints the job",
    "test-only": "answer no at the question",
    "clusters": "log in to that cluster",
    "wait": "`det batch logs -f` follows a job to its end",
}
"""Options that would change what det batch relies on, and what to do instead."""


@dataclass(frozen=True)
class Option:
    """An option by its long name. ``written``: as the user has typed it."""

    name: str
    value: str | None
    origin: str
    written: str | None = None

    @property
    def is_for_script(self) -> bool:
        """False for the variables that are passed on: those are the affair of whoever submits."""
        return self.name != "export" or self.origin == TYPED

    @property
    def text(self) -> str:
        if self.written is not None:
            return self.written
        return f"--{self.name}" if self.value is None else f"--{self.name}={_quoted(self.value)}"


def of_job(settings: JobSettings, *, name: str, output: str, tasks_per_node: int) -> list[Option]:
    """Returns the options that follow from the settings. ``output``: pattern of the output file."""

    def option(key: str, value: str | None, setting: str) -> Option:
        return Option(key, value, FLAG if setting in settings.typed else DEFAULT)

    options = [
        option("ntasks-per-node", str(tasks_per_node), "gpus"),
        option("job-name", name, "exp_name"),
        option("output", output, "exp_name"),
        option("nodes", str(settings.nodes), "nodes"),
        option("time", settings.time, "time"),
    ]
    if settings.memory_per_gpu:
        options.append(option("mem-per-gpu", settings.memory_per_gpu, "memory_per_gpu"))
    else:
        options.append(option("mem", settings.memory, "memory"))
    options.append(option("cpus-per-task", str(settings.cpus), "cpus"))
    if settings.gpus:
        kind = f"gpu:{settings.gpu_type}" if settings.gpu_type else "gpu"
        options.append(option("gres", f"{kind}:{settings.gpus}", "gpus"))
    if settings.partition:
        options.append(option("partition", settings.partition, "partition"))
    if settings.account:
        options.append(option("account", settings.account, "account"))
    if settings.is_requeued:
        options.append(option("requeue", None, "requeue"))
        options.append(option("signal", f"USR1@{SIGNAL_SECONDS}", "requeue"))
        options.append(option("open-mode", "append", "requeue"))
    return options


def merge(
    own: Iterable[Option], site: Mapping[str, str | None], typed: Sequence[str], environ: Mapping[str, str], source: str
) -> list[Option]:
    """Returns the options that count, in order: a flag over SITE.yaml, SITE.yaml over a default, ``SBATCH_*`` over
    lines of the script, and what is typed behind ``--`` over all.

    Raises ConfigError for an option that would change what det batch relies on.
    """
    by_name = {option.name: option for option in own}
    for name, value in site.items():
        _refuse(name, source)
        if by_name.get(name, Option(name, None, DEFAULT)).origin != FLAG:
            _set(by_name, Option(name, value, source))
    for variable, value in sorted(environ.items()):
        option_name = _name_of(variable)
        if option_name is not None:
            if option_name == "export":  # the values may be secrets
                value = ",".join(part.partition("=")[0] for part in value.split(","))
            if option_name not in REFUSED:
                _set(by_name, Option(option_name, value, variable))
    for option in parse(typed):
        _refuse(option.name, TYPED)
        _set(by_name, option)
    return list(by_name.values())


def without_refused(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables without those of ``sbatch`` that would change what det batch relies on."""
    return {variable: value for variable, value in environ.items() if _name_of(variable) not in REFUSED}


def _name_of(variable: str) -> str | None:
    """Returns the option that a variable of ``sbatch`` sets, None for other variables."""
    if not variable.startswith("SBATCH_") or variable in _NO_OPTIONS:
        return None
    name = variable.removeprefix("SBATCH_").lower().replace("_", "-")
    return _OF_VARIABLE.get(name, name)


def parse(words: Sequence[str]) -> list[Option]:
    """Returns the options among words as typed; a word without a hyphen is the value of the option before it."""
    groups: list[list[str]] = []
    for word in words:
        if word.startswith("-") and word != "-":
            groups.append([word])
        elif groups:
            groups[-1].append(word)
        else:
            raise ConfigError(f'"{word}" is no option; options of sbatch stand behind `--`, such as `-- --qos=high`')
    return [_parsed(group) for group in groups]


def check_time(options: Iterable[Option]) -> None:
    """Raises ConfigError for a time limit that Slurm would not understand."""
    for option in options:
        if option.name == "time" and option.value is not None:
            try:
                durations.seconds(option.value)
            except ValueError:
                raise ConfigError(
                    f"{option.text} ({option.origin}) is no time limit; use dd-HH:MM:SS, such as 00-01:00:00; nothing "
                    "was submitted"
                ) from None


def value_of(options: Iterable[Option], name: str) -> str | None:
    """Returns the value of an option, None if it is not set."""
    return next((option.value for option in options if option.name == name), None)


def check_tasks(options: Iterable[Option], expected: int) -> None:
    """Raises ConfigError if tasks per node and GPUs differ: Lightning would wait for ever for the missing tasks."""
    for option in options:
        if option.name in ("ntasks-per-node", "ntasks") and option.value != str(expected) and option.origin != DEFAULT:
            raise ConfigError(
                f"{option.text} ({option.origin}): Lightning needs one task for each GPU of a node, {expected} here; "
                "leave the option out, or change --gpus"
            )


def _parsed(group: Sequence[str]) -> Option:
    first, written = group[0], " ".join(_quoted(word) for word in group)
    if first.startswith("--"):
        name, equals, value = first[2:].partition("=")
    else:
        name, value = _LONG.get(first[1], first[1]), first[2:]
        equals = value
    if not equals and len(group) > 1:
        return Option(name, " ".join(group[1:]), TYPED, written)
    return Option(name, value if equals else None, TYPED, written)


def _set(by_name: dict[str, Option], option: Option) -> None:
    for names in _INSTEAD_OF:
        if option.name in names:
            for other in names - {option.name}:
                by_name.pop(other, None)
    by_name[option.name] = option


def _refuse(name: str, origin: str) -> None:
    if name in REFUSED:
        raise ConfigError(f"--{name} ({origin}) cannot be set here: {REFUSED[name]}")


def _quoted(text: str) -> str:
    return f'"{text}"' if any(each.isspace() for each in text) else text
