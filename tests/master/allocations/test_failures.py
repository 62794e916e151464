"""The sentence about a failed attempt: rank, host, last line of the traceback and exit, or the scheduler's reason."""

import pytest

from determined.link.messages import ContainerExit, RankExit
from determined.states import ExitReason as R
from determined.states import TrialState
from determined_master.allocations.error_sentence import find
from determined_master.allocations.failures import MAX_CHARACTERS, ContainerEnd, cause_of
from determined_master.trials.settlement import sequel
from determined_master.trials.states import TrialOutcome

TRACEBACK = [
    "step 7",
    "[rank3]: Traceback (most recent call last):",
    '[rank3]:   File "train.py", line 3, in <module>',
    "[rank3]:     fit(model)",
    "[rank3]: RuntimeError: Error(s) in loading state_dict for Net:",
    "[rank3]: \tsize mismatch for head.weight",
    "[W1122 ProcessGroupNCCL.cpp:1250] Warning: process group has NOT been destroyed",
]


def worker(rank: int, *lines: str, code: int | None = 1, **values) -> ContainerEnd:
    record = RankExit(rank=rank, code=code, host=f"node-{rank}", last_lines=list(lines), time=values.pop("time", 1.0))
    return ContainerEnd(
        f"agent-{rank}", ContainerExit(kind="exited", code=code, ranks=[record.model_copy(update=values)])
    )


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        (TRACEBACK, "RuntimeError: Error(s) in loading state_dict for Net:"),
        (["  File 'x.py', line 1", "    x x", "SyntaxError: invalid syntax"], "SyntaxError: invalid syntax"),
        (["Traceback (most recent call last):", "  a", "KeyError: 1", "", *TRACEBACK[1:5]], TRACEBACK[4][9:]),
        (["Traceback (most recent call last):", '  File "x"'], "Traceback (most recent call last):"),
        (["loss 0.3"], ""),
        ([], ""),
    ],
)
def test_the_cause_of_a_failure_is_the_last_line_of_the_traceback(lines: list[str], error: str):
    assert find(lines).text == error


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ([worker(3, *TRACEBACK)], f"rank 3 on node-3: {TRACEBACK[4][9:]} (train.py:3, exit code 1)"),
        ([worker(0, code=7)], "rank 0 on node-0 exited with code 7"),
        ([worker(0, signal=9, code=137)], "rank 0 on node-0 was killed by signal 9 (SIGKILL)"),
        (
            [worker(1, signal=9, code=137, cause="out_of_memory")],
            "rank 1 on node-1: out of memory (signal 9, SIGKILL)",
        ),
        ([worker(1, cause="hang")], "rank 1 on node-1: no rank completed a step in time (exit code 1)"),
        (
            [worker(0, "ConnectionError: peer", time=2.0), worker(1, "ValueError: mine", time=1.0)],
            "rank 1 on node-1: ValueError: mine (exit code 1)",
        ),
        ([ContainerEnd("a", ContainerExit(kind="exited", code=3))], "the process exited with code 3"),
        (
            [ContainerEnd("a", ContainerExit(kind="exited", code=1, message="it exited:\nout\nValueError: x"))],
            "ValueError: x (exit code 1)",
        ),
        (
            [
                ContainerEnd("a", ContainerExit(kind="killed", signal=9)),
                ContainerEnd("b", ContainerExit(kind="exited", code=1, message="it exited:\nValueError: x")),
            ],
            "the process on b: ValueError: x (exit code 1)",
        ),
        (
            [ContainerEnd("a", ContainerExit(kind="exited", code=1, message="x:\nOSError: x", hint="it was left out"))],
            "OSError: x (exit code 1); it was left out",
        ),
        ([ContainerEnd("a", ContainerExit(kind="failed_to_start", message="no such image"))], "no such image"),
    ],
)
def test_the_cause_of_a_failure_names_the_worker(ends: list[ContainerEnd], text: str):
    assert cause_of(R.ERRORED, "the agent's words", ends) == text


@pytest.mark.parametrize(
    ("reason", "message", "text"),
    [
        (R.COMPLETED, "", None),
        (R.PREEMPTED, "paused by ann", None),
        (R.KILLED, "killed by ann", None),
        (
            R.AGENT_LOST,
            "agent a was lost: it did not reconnect in time",
            "agent a was lost: it did not reconnect in time",
        ),
        (R.AGENT_LOST, "", "agent lost"),
        (R.IMPOSSIBLE, "asks for 4 slots, but there are 2", "asks for 4 slots, but there are 2"),
        (R.INVALID_HP, "", "the trial reported invalid hyperparameters"),
        (R.ERRORED, "no record:\nmore", "no record"),
    ],
)
def test_the_cause_of_a_failure_may_be_the_sentence_of_scheduler_or_agent(reason: R, message: str, text: str | None):
    assert cause_of(reason, message, []) == text


def test_the_error_sentence_is_one_bounded_line_without_secrets():
    sentence = cause_of(R.ERRORED, "", [worker(0, "ValueError: hunter22 \0" + "x" * 1000)], {"hunter22"}) or ""
    assert "hunter22" not in sentence
    assert "ValueError: ******** \u2400xxx" in sentence
    assert len(sentence) == MAX_CHARACTERS
    assert sentence.endswith("…")


@pytest.mark.parametrize(
    ("outcome", "reason", "attempt", "line"),
    [
        (TrialOutcome(None, None, 1), R.ERRORED, 1, "attempt 1 of 6 failed: why; attempt 2 of 6 follows"),
        (
            TrialOutcome(TrialState.ERROR, R.OUT_OF_RESTARTS, 5),
            R.ERRORED,
            6,
            "attempt 6 of 6 failed: why; no restart is left (max_restarts: 5)",
        ),
        (
            TrialOutcome(TrialState.ERROR, R.IMPOSSIBLE),
            R.IMPOSSIBLE,
            1,
            "attempt 1 of 6 cannot start: why (request unfulfillable)",
        ),
        (
            TrialOutcome(None, None, 1, 2, backoff=4.0),
            R.AGENT_LOST,
            2,
            "attempt 2 of 6 was lost: why; it restarts in 4 s, which does not count against max_restarts",
        ),
    ],
)
def test_a_failure_line_names_the_consequence(outcome: TrialOutcome, reason: R, attempt: int, line: str):
    assert sequel(outcome, reason, "why", attempt=attempt, max_restarts=5) == line


def test_no_phrase_of_an_exit_reason_reads_like_an_identifier():
    phrases = {reason.phrase for reason in R}
    assert len(phrases) == len(R)
    assert not any("_" in phrase for phrase in phrases)
    assert not {"impossible", "killed as asked", "errored", "system"} & phrases


def test_terminal_control_characters_are_replaced_in_the_error_sentence():
    message = "bad \x1b[31m\x08\x07 \u202eright to left\x7f\x00"
    assert cause_of(R.IMPOSSIBLE, message, []) == "bad \u241b[31m\u2408\u2407 \ufffdright to left\ufffd\u2400"
