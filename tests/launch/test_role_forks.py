"""Preload: processes that are forks behave as new processes do."""

import os
import signal

import pytest
from tests.support import role_layers
from tests.support.role_layers import role
from tests.support.waiting import wait_until

from determined_launch import pause_signal, processes, role_forks

pytestmark = pytest.mark.budget(30, "starts several interpreters")

HEAVY = "import os, sys\nprint('imported by', 'a program' if 'DET_ROLE' in os.environ else 'the layer', flush=True)\n"
SHOWS = """
import atexit, heavy, json, multiprocessing, os, random, signal, sys, threading
class Local: pass
import pickle
facts = {
    "argv": sys.argv, "file": __file__, "name": __name__, "path": sys.path[0], "role": os.environ["DET_ROLE"],
    "stdin": sys.stdin.read(), "spec": __spec__ and __spec__.name, "package": __package__,
    "main": sys.modules["__main__"].__dict__ is globals(), "pickled": type(pickle.loads(pickle.dumps(Local()))) is Local,
    "handlers": [signal.getsignal(number) is signal.SIG_DFL for number in (signal.SIGTERM, signal.SIGUSR1)],
    "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])), "wrapped": os.environ["DET_WORKER_OF"],
    "buffered": sys.stdout.line_buffering, "files": len(os.listdir("/proc/self/fd")),
    "own": open("/proc/self/stat").read().split()[0] == str(os.getpid()), "threads": threading.active_count(),
}
sys.stderr.write(json.dumps(facts) + "\\n")
atexit.register(lambda: print("atexit ran"))
threading.Thread(target=lambda: print("the thread ended")).start()
kept_open = open("kept-" + os.environ["DET_ROLE"], "w")
kept_open.write("written at the end of the interpreter")
"""


@pytest.fixture
def run(tmp_path):
    """Returns a function that runs roles with and without preload, and returns both outputs without the import."""

    def run_both(roles, scripts):
        outputs = []
        for more in ({}, {"preload": ["heavy"]}):
            role_layers.write(tmp_path, roles, {"heavy.py": HEAVY, **scripts}, **more)
            done = role_layers.run(tmp_path)
            imports = [line for line in done.stdout.splitlines() if "imported by" in line]
            assert imports == (
                ["imported by the layer"]
                if more
                else [f"[rank={n}] imported by a program" for n in range(len(imports))]
            )
            lines = [line for line in done.stdout.splitlines() if line not in imports]
            outputs.append((done.returncode, sorted(lines)))
        return outputs

    return run_both


def test_a_fork_has_the_arguments_names_signals_and_end_of_a_new_process(tmp_path, run):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "script.py").write_text(SHOWS)
    module = {"name": "module", "command": ["python3", "-m", "shows", "a b", "--"]}
    new, forked = run([module], {"shows.py": SHOWS})
    assert forked == new
    assert new[0] == 0
    assert (tmp_path / "kept-module").read_text() == "written at the end of the interpreter"


def test_a_script_that_is_a_fork_has_the_folder_of_the_script_on_its_path(run):
    new, forked = run([role("script", "shows.py", "x")], {"shows.py": SHOWS})
    assert forked == new


@pytest.mark.parametrize(
    "text",
    [
        "import heavy\ndef f():\n    raise ValueError('bad')\nf()",
        "import heavy, sys\nsys.exit('no data')",
        "import heavy, sys\nsys.exit(300)",
        "import heavy\nexec('syntax error')",
        "import heavy, os\nos.kill(os.getpid(), 9)",
        "import heavy\nraise KeyboardInterrupt",
        "import heavy, nowhere",
    ],
)
def test_a_fork_that_fails_shows_and_returns_what_a_new_process_does(run, text):
    new, forked = run([role("data", "fails.py")], {"fails.py": text})
    assert forked == new
    assert new[0] != 0


def test_a_missing_module_of_the_command_is_named_as_python_does(run):
    new, forked = run([{"name": "a", "command": ["python3", "-m", "nowhere"]}], {})
    assert forked[1][-1].replace("\n", "") == new[1][-1]
    assert (forked[0], new[0]) == (1, 1)


def test_a_role_with_another_environment_or_program_is_a_new_process_and_that_is_said(tmp_path):
    roles = [role("a", "shows.py"), role("b", "shows.py", environment={"A": "1"}), {"name": "c", "command": ["true"]}]
    role_layers.write(tmp_path, roles, {"heavy.py": HEAVY, "shows.py": SHOWS}, preload=["heavy"])
    lines = role_layers.run(tmp_path).stdout.splitlines()
    assert [line for line in lines if line.endswith("imported by a program")] == ["[rank=1] imported by a program"]
    assert [line for line in lines if "preload" in line] == [
        "determined.launch.roles: preload has no effect on b, c: its command is neither python3 SCRIPT.py … nor "
        "python3 -m MODULE …, or its environment differs from that of a"
    ]


def test_a_variable_of_the_roles_is_set_before_the_import(tmp_path):
    roles = [role("a", "reads.py", environment={"A": "1"})]
    heavy = "import os\nseen = os.environ.get('A')"
    role_layers.write(
        tmp_path, roles, {"heavy.py": heavy, "reads.py": "import heavy; print(heavy.seen)"}, preload=["heavy"]
    )
    assert role_layers.run(tmp_path).stdout == "[rank=0] 1\n"


def test_a_module_that_starts_a_thread_is_not_forked(tmp_path):
    heavy = "import threading\nthreading.Thread(target=threading.Event().wait, name='pool', daemon=True).start()"
    role_layers.write(tmp_path, [role("a")], {"heavy.py": heavy}, preload=["heavy"])
    done = role_layers.run(tmp_path)
    assert (done.returncode, done.stdout) == (
        0,
        "determined.launch.roles: preload has no effect: the import has started the thread pool\n",
    )


def test_a_module_that_opens_a_gpu_is_not_forked(monkeypatch):
    monkeypatch.setattr(role_forks, "_DEVICES", "/dev/null")
    with open(os.devnull):
        assert role_forks.preload(["json"]) == "the import has opened a GPU"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nowhere", "ModuleNotFoundError: No module named 'nowhere'"),
        (None, "ModuleNotFoundError: No module named 'heavy'"),
        ("raise ValueError('no GPU')", "ValueError: no GPU"),
    ],
)
def test_a_module_that_cannot_be_imported_is_named(tmp_path, text, said):
    role_layers.write(tmp_path, [role("a")], {"heavy.py": text} if text else {}, preload=["heavy"])
    done = role_layers.run(tmp_path)
    assert (done.returncode, done.stdout) == (
        1,
        f"determined.launch.roles: preload: cannot import heavy: {said}; install it or take it from preload\n",
    )


def test_a_killed_fork_is_recorded_and_the_others_end(tmp_path):
    waits = "import os, pathlib, time\npathlib.Path(os.environ['DET_ROLE_INDEX']).write_text(str(os.getpid()))\ntime.sleep(600)"
    role_layers.write(tmp_path, [role("a", "waits.py", count=2)], {"waits.py": waits}, preload=["json"])
    layer = role_layers.start(tmp_path)
    files = [tmp_path / "0", tmp_path / "1"]
    wait_until(lambda: all(path.exists() and path.read_text() for path in files), what="both run")
    wrappers = processes.wrappers_below(layer.pid)
    assert sorted(processes.rank_of_fork(pid) for pid in wrappers) == [0, 1]
    pids = [int(path.read_text()) for path in files]
    assert sorted(pause_signal.roots(layer.pid, layer.pid)) == sorted(pids)
    os.kill(pids[1], signal.SIGKILL)
    ((code, output),) = role_layers.finish([layer])
    assert code == 137
    assert output == "determined.launch.roles: role a[1] (rank 1) failed: it was killed by signal 9 (SIGKILL)\n"


def test_the_stacks_of_forks_that_hang_are_shown_by_their_ranks(tmp_path):
    role_layers.write(
        tmp_path, [role("a", "waits.py", count=2)], {"waits.py": "import time; time.sleep(600)"}, preload=["json"]
    )
    done = role_layers.run(tmp_path, DET_EXPERIMENT_CONFIG='{"health": {"hang_timeout": "1s"}}')
    assert done.returncode == 1
    assert {"[rank=0] process", "[rank=1] process"} <= {line[:16] for line in done.stdout.splitlines()}


@pytest.mark.torch
def test_forks_of_a_process_with_torch_compute_and_train_together(tmp_path):
    trains = """
import os, numpy, torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(total)
print("sum", total.item(), (torch.ones(300, 300) @ torch.ones(300, 300)).sum().item())
for own in (numpy.random.rand(), torch.initial_seed(), torch.rand(1).item()):
    numbers = [None, None]
    dist.all_gather_object(numbers, own)
    assert numbers[0] != numbers[1]
dist.destroy_process_group()
"""
    role_layers.write(tmp_path, [role("a", "trains.py", count=2)], {"trains.py": trains}, preload=["torch", "numpy"])
    done = role_layers.run(tmp_path, OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stdout
    sums = sorted(line for line in done.stdout.splitlines() if "sum" in line)
    assert sums == [f"[rank={rank}] sum 3.0 27000000.0" for rank in range(2)]
