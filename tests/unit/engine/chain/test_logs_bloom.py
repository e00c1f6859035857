"""Header blooms as a proof of absence; against those of a node in test_anvil_chain."""

import hypothesis
import hypothesis.strategies as st

from cambist.engine.chain.nodes.logs_bloom import BLOOM_BYTES, bloom_of, covers, may_match
from cambist.engine.chain.port import Log, LogFilter


def log(address: bytes, *topics: bytes) -> Log:
    return Log(address, topics, b"", 1, b"\1" * 32, b"\2" * 32, 0, 0)


ADDRESSES = st.binary(min_size=20, max_size=20)
TOPICS = st.binary(min_size=32, max_size=32)
LOGS = st.lists(
    st.builds(lambda address, topics: log(address, *topics), ADDRESSES, st.lists(TOPICS, max_size=4))
)


def test_an_item_sets_three_bits_at_most_wherever_it_stands() -> None:
    one, other = log(b"\1" * 20), log(b"\2" * 20, b"\3" * 32)
    assert sum(byte.bit_count() for byte in bloom_of([one, one])) == 3
    assert sum(byte.bit_count() for byte in bloom_of([one, other])) <= 9
    assert len(bloom_of([])) == BLOOM_BYTES


@hypothesis.given(LOGS, ADDRESSES, TOPICS)
def test_what_is_there_is_never_denied(logs: list[Log], address: bytes, topic: bytes) -> None:
    bloom = bloom_of([*logs, log(address, topic)])
    assert may_match(bloom, LogFilter())
    assert may_match(bloom, LogFilter((address, b"\0" * 20), ((topic,),)))
    assert covers(bloom, bloom_of(logs))


def test_what_is_certainly_not_there() -> None:
    bloom = bloom_of([log(b"\1" * 20, b"\2" * 32)])
    assert not may_match(bytes(BLOOM_BYTES), LogFilter())
    assert not may_match(bloom, LogFilter((b"\3" * 20,)))
    assert not may_match(bloom, LogFilter((b"\1" * 20,), ((b"\4" * 32,),)))
    assert not covers(bloom, bloom_of([log(b"\1" * 20, b"\4" * 32)]))
