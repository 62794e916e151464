"""The handshake by messages: both ends prove the key, for one use, one nonce and one pair of ends."""

import pytest

from determined_launch import handshake

KEY, ENDS = b"k" * 32, (b"worker", b"master worker")


def test_two_ends_with_one_key_admit_each_other() -> None:
    nonce = handshake.challenge()
    answer = handshake.answer(KEY, nonce, b"actor", ends=ENDS)
    admitted = handshake.admit_answer(KEY, nonce, answer, ends=ENDS)
    assert admitted is not None
    assert admitted[0] == b"actor"
    assert handshake.is_proof(KEY, nonce, answer, admitted[1], ends=ENDS)


def test_what_is_said_may_be_empty() -> None:
    nonce = handshake.challenge()
    answer = handshake.answer(KEY, nonce, b"", ends=ENDS)
    admitted = handshake.admit_answer(KEY, nonce, answer, ends=ENDS)
    assert admitted is not None
    assert admitted[0] == b""


@pytest.mark.parametrize("length", [0, 1, 31, 32, 63, 64, 65, 200])
def test_bytes_that_are_no_answer_are_refused(length: int) -> None:
    assert handshake.admit_answer(KEY, handshake.challenge(), b"x" * length, ends=ENDS) is None


def test_an_answer_to_another_nonce_key_or_use_is_refused() -> None:
    nonce = handshake.challenge()
    answer = handshake.answer(KEY, nonce, b"actor", ends=ENDS)
    assert handshake.admit_answer(KEY, handshake.challenge(), answer, ends=ENDS) is None
    assert handshake.admit_answer(b"z" * 32, nonce, answer, ends=ENDS) is None
    assert handshake.admit_answer(KEY, nonce, answer, ends=(b"shell", b"agent")) is None
    assert handshake.admit_answer(KEY, nonce, b"c" + answer[1:], ends=ENDS) is None


def test_an_admitting_end_without_the_key_cannot_prove_itself() -> None:
    nonce = handshake.challenge()
    answer = handshake.answer(KEY, nonce, b"actor", ends=ENDS)
    for proof in (b"", answer[-32:], b"x" * 32):  # its own proof sent back does not count either
        assert not handshake.is_proof(KEY, nonce, answer, proof, ends=ENDS)


def test_two_challenges_differ() -> None:
    assert handshake.challenge() != handshake.challenge()
