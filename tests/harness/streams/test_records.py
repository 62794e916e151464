"""Records of streams: what is written is read, and nothing else is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from determined.streams.records import (
    MAX_CONTENT_BYTES,
    Kind,
    Record,
    StreamBroken,
    decode,
    encode,
    encode_offset,
    record_of,
)

KINDS = [kind for kind in Kind if kind is not Kind.OFFSET]


@given(st.sampled_from(KINDS), st.binary(max_size=200))
def test_a_decoded_record_equals_the_encoded_one(kind: Kind, content: bytes):
    assert decode(encode(Record(kind, content))) == Record(kind, content)


@given(st.integers(0, 2**64 - 1))
def test_a_decoded_offset_equals_the_encoded_one(offset: int):
    assert decode(encode_offset(offset)) == offset


@pytest.mark.parametrize(
    "message", [b"", b"\x09", b"\xff123", b"\x07123", b"\x01" + bytes(MAX_CONTENT_BYTES + 1)], ids=repr
)
def test_a_message_of_no_known_form_is_refused(message: bytes):
    with pytest.raises(StreamBroken):
        decode(message)


@pytest.mark.parametrize("content", [b"", b"[]", b"1", b"\xff", b"{"])
def test_a_value_that_is_no_json_object_is_refused(content: bytes):
    with pytest.raises(StreamBroken):
        _ = Record(Kind.RESIZE, content).value
    assert record_of(Kind.STATUS, {"code": 1}).value == {"code": 1}
