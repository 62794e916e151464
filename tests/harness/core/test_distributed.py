"""Exchange of values between real worker processes, and the refusal of peers without the key."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time

import pytest
from tests.support.free_ports import free_port

from determined import core
from determined.core import _collectives
from determined_launch import handshake

WORKER = """
import json, sys
from determined import core
d = core.DistributedContext.from_torch_distributed()
out = [d.rank, d.size, d.local_rank, d.cross_rank, d.gather(d.rank * 10), d.allgather({"r": d.rank}),
       d.broadcast("from %d" % d.rank), d.allgather_local(d.rank), d.gather_local(d.rank),
       d.broadcast_local(d.rank)]
d.close()
print(json.dumps(out))
"""


def start(rank, size, local_rank, local_size, folder, port, key, code=WORKER):
    environ = {
        **os.environ,
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(local_rank),
        "LOCAL_WORLD_SIZE": str(local_size),
        "DET_RUN_DIR": str(folder),
        "DET_CHIEF_IP": "127.0.0.1",
        "INTER_TRAIN_PROCESS_COMM_PORT_1": str(port),
        "MASTER_PORT": str(port),
    }
    environ.pop("DET_ALLOCATION_KEY", None)
    if key:
        environ["DET_ALLOCATION_KEY"] = key
    return subprocess.Popen(
        [sys.executable, "-c", code], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(workers):
    results = []
    for worker in workers:
        out, err = worker.communicate(timeout=180)
        assert worker.returncode == 0, err
        results.append(json.loads(out))
    return results


@pytest.mark.parametrize("key", ["ab" * 32, ""])
def test_ranks_of_one_machine_exchange_values(tmp_path, key):
    port = free_port()
    results = finish([start(rank, 3, rank, 3, tmp_path, port, key) for rank in range(3)])
    for rank, (r, size, local, cross, gathered, every, word, locals_, local_gather, local_word) in enumerate(results):
        assert (r, size, local, cross) == (rank, 3, rank, 0)
        assert gathered == ([0, 10, 20] if rank == 0 else None)
        assert every == [{"r": 0}, {"r": 1}, {"r": 2}]
        assert word == "from 0"
        assert locals_ == [0, 1, 2]
        assert local_gather == ([0, 1, 2] if rank == 0 else None)
        assert local_word == 0


def test_ranks_of_two_machines_exchange_values(tmp_path):
    port = free_port()
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    results = finish([start(r, 4, r % 2, 2, folders[r // 2], port, "cd" * 32) for r in range(4)])
    assert [item[4] for item in results] == [[0, 10, 20, 30], None, None, None]
    assert [item[7] for item in results] == [[0, 1], [0, 1], [2, 3], [2, 3]]
    assert [item[9] for item in results] == [0, 0, 2, 2]


class Bomb:
    def __reduce__(self):
        return (os.abort, ())


def test_a_peer_without_the_key_is_disconnected_before_its_data_is_unpickled():
    import pickle
    import threading

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    address = listener.getsockname()
    collectives = []
    chief = threading.Thread(
        target=lambda: collectives.append(_collectives.ChiefCollectives(listener, 2, b"right")), daemon=True
    )
    chief.start()
    with socket.create_connection(address) as stranger:
        stranger.recv(64)
        data = pickle.dumps(Bomb())
        stranger.sendall(data.ljust(200, b"\0"))
        # The chief closes the connection. Unread data may appear as a reset.
        try:
            assert stranger.recv(1) == b""
        except ConnectionResetError:
            pass
    with pytest.raises(ConnectionError):
        _collectives.WorkerCollectives(lambda: socket.create_connection(address), 1, b"wrong")
    worker = _collectives.WorkerCollectives(lambda: socket.create_connection(address), 1, b"right")
    chief.join(60)
    worker.gather("hello")
    assert collectives[0].gather("chief") == ["chief", "hello"]
    worker.close()
    collectives[0].close()


def test_strangers_do_not_extend_the_time_for_missing_workers(monkeypatch):
    import threading

    monkeypatch.setattr(_collectives, "PATIENCE_SECONDS", 0.5)
    monkeypatch.setattr(handshake, "SECONDS", 0.05)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    address, ended = listener.getsockname(), threading.Event()

    def visit():
        while not ended.wait(0.1):
            with contextlib.suppress(OSError):
                socket.create_connection(address, timeout=1).close()

    strangers = threading.Thread(target=visit)
    strangers.start()
    stop = threading.Timer(10, ended.set)
    stop.start()
    began = time.monotonic()
    try:
        with pytest.raises(TimeoutError, match=r"workers of rank \[1\] did not connect in time"):
            _collectives.ChiefCollectives(listener, 2, b"key")
        assert time.monotonic() - began < 5
    finally:
        stop.cancel()
        ended.set()
        strangers.join()


def test_a_worker_refuses_a_chief_without_the_key():
    import threading

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()

    def pretend():
        peer, _ = listener.accept()
        with peer:
            peer.sendall(b"n" * 32)
            peer.recv(1024)
            peer.sendall(b"x" * 32)

    thread = threading.Thread(target=pretend)
    thread.start()
    with pytest.raises(ConnectionError, match="does not have the allocation's key"):
        _collectives.WorkerCollectives(lambda: socket.create_connection(listener.getsockname()), 1, b"key")
    thread.join()
    listener.close()


def test_the_error_about_a_dead_worker_names_its_rank(tmp_path):
    code = (
        "from determined import core\nimport os\nd = core.DistributedContext.from_torch_distributed()\n"
        "if d.rank == 1: os._exit(3)\nd.gather(1)\n"
    )
    port = free_port()
    workers = [start(rank, 2, rank, 2, tmp_path, port, "ef" * 32, code) for rank in range(2)]
    errors = [worker.communicate(timeout=180)[1] for worker in workers]
    assert "lost the connection to the worker of rank 1" in errors[0]


def numbers_of(monkeypatch, folder, *values, **more):
    names = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")
    for name, value in zip(names, values, strict=False):
        monkeypatch.setenv(f"DET_PROCESS_{name}", value)
    for name, value in {"DET_RUN_DIR": str(folder), **more}.items():
        monkeypatch.setenv(name, value)


def test_the_context_of_roles_has_the_numbers_among_all_roles_not_those_of_torch(monkeypatch, tmp_path):
    numbers_of(monkeypatch, tmp_path, "0", "1", "0", "1", "0", "1", RANK="3", WORLD_SIZE="4", LOCAL_RANK="1")
    context = core.DistributedContext.from_roles()
    assert (context.rank, context.size, context.local_rank, context.local_size) == (0, 1, 0, 1)
    assert (context.cross_rank, context.cross_size) == (0, 1)
    assert context.allgather("x") == ["x"]
    context.close()


def test_the_context_of_roles_outside_of_their_layer_names_the_layer(monkeypatch, tmp_path):
    numbers_of(monkeypatch, tmp_path, "0")
    with pytest.raises(RuntimeError, match=r"DET_PROCESS_SIZE is not set: start .* determined\.launch\.roles"):
        core.DistributedContext.from_roles()


OF_ROLE = """
import os
from determined import core
d = core.DistributedContext.from_torch_distributed()
names = d.allgather(os.environ["DET_ROLE"])
assert names == [os.environ["DET_ROLE"]] * 2, names
d.close()
print("1")
"""


def test_the_contexts_of_two_roles_in_one_container_are_separate(tmp_path, monkeypatch):
    workers = []
    for role in ("actor", "critic"):
        monkeypatch.setenv("DET_ROLE", role)
        port = free_port()
        workers += [start(rank, 2, rank, 2, tmp_path, port, "ab" * 32, OF_ROLE) for rank in range(2)]
    assert finish(workers) == [1] * 4
