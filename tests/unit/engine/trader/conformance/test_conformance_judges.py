"""The judges by themselves: what they forgive and what they do not, on data made by hand."""

import json
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from cambist.codecs.messages.maker_messages import Pair, PriceGrid, Token
from cambist.config.errors import ConfigError
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import to_65
from cambist.engine.trader.conformance import rules
from cambist.engine.trader.conformance.check_table import CHECKS
from cambist.engine.trader.conformance.checks.firm import (
    Asking,
    Quoted,
    ask,
    deep_amount,
    judge_answer,
    small_amount,
    tiny_amount,
)
from cambist.engine.trader.conformance.checks.framing import head_of, judge_framing
from cambist.engine.trader.conformance.checks.grids import judge_grid
from cambist.engine.trader.conformance.checks.hostile import PIPELINED, RawAnswer, judge_pipelined
from cambist.engine.trader.conformance.checks.life import Sighting, judge_retirements
from cambist.engine.trader.conformance.checks.load import LoadSample, judge_load, load_report, percentile
from cambist.engine.trader.conformance.checks.market import (
    LEGS,
    MakerMarket,
    Range,
    deviation_bps,
    expected_range,
    market_of,
)
from cambist.engine.trader.conformance.checks.resources import RESOURCES, judge_contents, judge_resource
from cambist.engine.trader.conformance.checks.signatures import (
    SigningDomain,
    judge_nonces,
    judge_signature,
    order_digest,
)
from cambist.engine.trader.conformance.checks.stream import (
    Heard,
    PriceSample,
    PriceState,
    content_of,
    judge_agreement,
    judge_first,
    judge_update,
    price_states,
)
from cambist.engine.trader.conformance.exchange import HttpExchange, read_json
from cambist.engine.trader.conformance.options import read_base_url
from cambist.engine.trader.conformance.rules import FINDINGS_SHOWN_MAX, CheckStatus, Result, Selection, Tally

TOKENS = {
    "WETH": Token(address="0x" + "a1" * 20, decimals=18, type="ERC20"),  # type: ignore[arg-type]
    "USDC": Token(address="0x" + "b2" * 20, decimals=6, type="ERC20"),  # type: ignore[arg-type]
}
PAIRS = {"WETH/USDC": Pair("WETH", "USDC", Decimal(1))}


def market(bid: str = "3000", ask: str = "3001") -> MakerMarket:
    grid = PriceGrid(bids=((bid, "1"), ("2900", "9")), asks=((ask, "2"), ("3100", "8")))
    return market_of(TOKENS, PAIRS, {"WETH/USDC": grid}, 3)


def faults(results: Any) -> set[str]:
    return {result.check for result in results if result.status is CheckStatus.FAILED}


# --- JSON ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "Expecting value"),
        (b"{", "Expecting"),
        (b"\xff", "UTF-8"),
        (b"NaN", "NaN is not JSON"),
        (b"[" * 100_000, "nested too deep"),
        (b"1" * 5_000, "digits"),
        (b"{} {}", "Extra data"),
    ],
)
def test_what_is_no_json_is_said_and_never_raised(raw: bytes, says: str) -> None:
    assert says in read_json(raw).fault


def test_keys_that_stand_twice_are_kept_in_mind_at_any_depth() -> None:
    document = read_json(b'{"a": {"b": 1, "b": 2}, "a": 3, "c": 0.10}')
    assert document.duplicates == ("b", "a")
    assert document.value == {"a": 3, "c": Decimal("0.10")}


@given(st.binary(max_size=200))
def test_any_bytes_can_be_an_answer(raw: bytes) -> None:
    for name in ("tokens", "blacklist"):
        for result in judge_resource(name, HttpExchange(method="GET", target="/", status=200, body=raw)):
            assert result.check in CHECKS


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["3000", "0", "1.5"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["bids", "asks", "x"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(JSON_VALUES)
def test_any_json_can_be_a_grid(value: Any) -> None:
    assert {result.check for result in judge_grid("here", value)} <= CHECKS.keys()


# --- prices ----------------------------------------------------------------------------------------


def test_equal_prices_in_a_row_are_in_order_and_empty_sides_are_right() -> None:
    grid = {"bids": [["3000", "1"], ["3000.0", "2"]], "asks": []}
    assert faults(judge_grid("here", grid)) == set()
    assert faults(judge_grid("here", {})) == set()


@pytest.mark.parametrize("leg", LEGS, ids=lambda leg: leg.name)
def test_amounts_fit_the_side_and_deep_ones_cross_a_level(leg: Any) -> None:
    ladder = market().books["WETH/USDC"].side(leg)
    assert ladder is not None
    rng = random.Random(3)
    for _ in range(50):
        assert 0 < tiny_amount(leg, ladder, rng) <= leg.depth(ladder) // 5_000
        assert 0 < small_amount(leg, ladder, rng) <= leg.depth(ladder) // 200
        deep = deep_amount(leg, ladder, rng)
        assert leg.first_level(ladder) < deep <= leg.depth(ladder) // 2
        assert leg.walk(ladder, deep) is not None
    assert leg.walk(ladder, leg.depth(ladder)) is not None
    assert leg.walk(ladder, leg.depth(ladder) + 1) is None


def test_a_quote_is_measured_from_what_both_grids_span() -> None:
    sell = LEGS[0]
    span = expected_range(market(bid="3000"), market(bid="3010"), "WETH/USDC", sell, 10**18)
    assert span is not None
    assert span == Range(3_000_000_000, 3_010_000_000, still=False)
    assert deviation_bps(3_005_000_000, span) == 0
    assert deviation_bps(2_997_000_000, span) == -10
    assert deviation_bps(3_013_010_000, span) == 10
    assert deviation_bps(2_999_999_997, span) == 0
    assert expected_range(market(), market(), "WETH/USDC", sell, 11 * 10**18) is None


def test_an_amount_that_comes_to_nothing_need_not_be_quoted() -> None:
    dust, sell = 10**8, LEGS[0]  # wei; at 3000 USDC less than one raw unit
    asking = ask(market(), "WETH/USDC", sell, dust, "0x" + "11" * 20, "0x" + "7a" * 20)
    refusal = HttpExchange(method="POST", target="/firm", status=400, body=b'{"error": "too small"}')
    assert faults(judge_answer(asking, refusal, market(), market())) == set()
    assert faults(judge_answer(structs.replace(asking, amount=10**13), refusal, market(), market())) == {
        "firm.quotes"
    }


def test_an_expiry_with_a_fraction_is_refused_for_what_it_is() -> None:
    asking = ask(market(), "WETH/USDC", LEGS[0], 10**15, "0x" + "11" * 20, "0x" + "7a" * 20)
    words = dict.fromkeys(("nonceAndMeta", "makerAmount", "takerAmount"), "1")
    addresses = dict.fromkeys(("makerAsset", "takerAsset", "maker", "taker"), "0x" + "11" * 20)
    order = {"expiry": 1_800_000_000.0, "signature": "0x", **words, **addresses}
    answer = HttpExchange(
        method="POST", target="/firm", status=200, body=json.dumps({"order": order}).encode()
    )
    found = list(judge_answer(asking, answer, market(), market()))
    assert faults(found) == {"firm.order-form"}
    assert isinstance(found[-1], Result)
    assert found[-1].got.endswith("expected a JSON integer, without fraction or exponent, got 1800000000.0")


# --- nonces ----------------------------------------------------------------------------------------


def nonce_faults(upper: list[int]) -> set[str]:
    return faults(judge_nonces([number << 160 | 7 for number in upper], "here", "firm.nonce-distinct"))


def test_random_nonces_pass_and_so_does_a_clock_beside_randomness() -> None:
    rng = random.Random(1)
    for seed in range(200):
        rng.seed(seed)
        assert nonce_faults([rng.getrandbits(96) for _ in range(8)]) == set()
        ulids = [(1_800_000_000_000 + at * 3) << 48 | rng.getrandbits(48) for at in range(16)]
        assert nonce_faults(ulids) == set()


@pytest.mark.parametrize(
    "upper",
    [
        [1_000 + at for at in range(16)],
        [1_800_000_000_000_000_000 + at * 1_234_567 for at in range(16)],
        [(at * 0x9E3779B97F4A7C15F39CC060) % (1 << 96) for at in range(1, 17)],
        [(1_800_000_000 + at) << 64 for at in range(16)],
    ],
    ids=["counter", "nanoseconds", "equal steps", "seconds above zeros"],
)
def test_nonces_with_a_pattern_are_foreseeable(upper: list[int]) -> None:
    assert nonce_faults(upper) == {"firm.nonce-unforeseeable"}


# --- the socket ------------------------------------------------------------------------------------

BOOK = {"bids": [["3000", "1"]], "asks": [["3001", "1"]]}


def test_an_update_replaces_its_pairs_grid_whole_and_leaves_the_others() -> None:
    messages = [
        {"prices": {"A/B": BOOK, "C/D": BOOK}},
        {"tokens": {}},
        {"prices": {"A/B": {"asks": [["9", "1"]]}}},
        {"prices": {"C/D": {}}},
    ]
    states = price_states([Heard(at, json.dumps(message).encode()) for at, message in enumerate(messages)])
    assert [state.at_ms for state in states] == [0, 2, 3]
    assert states[-1].grids == {"A/B": {"asks": [["9", "1"]]}, "C/D": {}}


@pytest.mark.parametrize(
    ("http", "agrees"),
    [
        (BOOK, True),
        ({"bids": [["3001", "7"]], "asks": [["3002", "1"]]}, True),
        ({"bids": [["3020", "1"]], "asks": [["3021", "1"]]}, False),
        ({"bids": [["3000", "1"]]}, False),
        ({"bids": [["3000", "1"]], "asks": []}, False),
        ({}, False),
        ({"bids": [["x", 1]], "asks": 5}, False),
    ],
)
def test_socket_and_http_agree_within_the_drift(http: Any, agrees: bool) -> None:
    states = [PriceState(0, {"A/B": BOOK})]
    found = list(judge_agreement(states, [PriceSample(100, 200, {"A/B": http})], 30))
    assert [result.status is CheckStatus.PASSED for result in found] == [agrees]


def test_a_change_on_its_way_is_no_disagreement_and_an_old_one_is() -> None:
    states = [PriceState(0, {"A/B": BOOK}), PriceState(900, {"A/B": {}})]
    disabled = PriceSample(100, 200, {"A/B": {}})
    assert faults(judge_agreement(states, [disabled], 30)) == set()
    late = [states[0], PriceState(1_300, {"A/B": {}})]
    assert faults(judge_agreement(late, [disabled], 30)) == {"stream.agrees"}


def test_what_changed_between_two_answers_may_stand_either_way_in_the_first_message() -> None:
    def answer(name: str, content: Any) -> HttpExchange:
        return HttpExchange(
            method="GET", target=f"/{name}", status=200, body=json.dumps({name: content}).encode()
        )

    def answers(blacklist: list[str]) -> dict[str, HttpExchange]:
        contents = {"tokens": {}, "pairs": {}, "prices": {}, "blacklist": blacklist}
        return {name: answer(name, content) for name, content in contents.items()}

    def first(blacklist: list[str]) -> Heard:
        contents = {"tokens": {}, "pairs": {}, "prices": {}, "blacklist": blacklist}
        return Heard(0, json.dumps(contents).encode())

    around = [answers(["0xA"]), answers(["0xa", "0xb", "0xc"])]
    assert faults(judge_first(first(["0xa", "0xb"]), around)) == set()
    assert faults(judge_first(first(["0xb"]), around)) == {"stream.first-agrees"}
    assert faults(judge_first(first(["0xa", "0xd"]), around)) == {"stream.first-agrees"}


def test_the_first_message_agrees_where_everything_that_counts_is_the_same() -> None:
    def contents(address: str, now: int) -> dict[str, Any]:
        token = {"address": address, "decimals": 18, "type": "ERC20", "updatedAt": now}
        pair = {"base": "A", "quote": "A", "liquidityUSD": now, "volume": now}
        return {"tokens": {"A": token}, "pairs": {"A/A": pair}, "prices": {}, "blacklist": []}

    answers = {
        name: HttpExchange(
            method="GET", target=f"/{name}", status=200, body=json.dumps({name: content}).encode()
        )
        for name, content in contents("0x" + "aB" * 20, 1).items()
    }

    def said(address: str) -> set[str]:
        return faults(judge_first(Heard(0, json.dumps(contents(address, 2)).encode()), [answers]))

    assert said("0x" + "ab" * 20) == set()
    assert said("0x" + "ac" * 20) == {"stream.first-agrees"}


ENTRY_KEYS = st.sampled_from(
    [
        "tokens", "pairs", "prices", "blacklist", "message", "order", "address", "decimals", "type", "symbol",
        "base", "quote", "liquidityUSD", "bids", "asks", "WETH", "WETH/USDC",
    ]
)  # fmt: skip
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from(["0x" + "a1" * 20, "ERC20", "3000", "WETH"]),
)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(ENTRY_KEYS, inner, max_size=5),
    )


ANY_MESSAGE = st.recursive(SCALARS, _nested, max_leaves=20)


@given(ANY_MESSAGE, ANY_MESSAGE)
def test_any_json_can_be_what_a_maker_says(one: Any, other: Any) -> None:
    raw = json.dumps(one).encode()
    answers = {
        name: HttpExchange(method="GET", target=f"/{name}", status=200, body=json.dumps(content).encode())
        for name in RESOURCES
        for content in [{name: other}]
    }
    heard = Heard(0, raw)
    grids = other if isinstance(other, dict) else {}
    results = [
        *judge_first(heard, [answers, answers]),
        *judge_update(2, heard, content_of(Heard(0, json.dumps(other).encode()))),
        *judge_agreement(price_states([heard]), [PriceSample(1, 2, grids)], 30),
        *judge_contents(answers),
        *(result for name in RESOURCES for result in judge_resource(name, answers[name])),
    ]
    assert {result.check for result in results} <= CHECKS.keys()


@given(ANY_MESSAGE)
def test_any_json_can_be_the_answer_to_a_quote(value: Any) -> None:
    asking = ask(market(), "WETH/USDC", LEGS[0], 10**15, "0x" + "11" * 20, "0x" + "7a" * 20)
    for body in (value, {"order": value}):
        exchange = HttpExchange(method="POST", target="/firm", status=200, body=json.dumps(body).encode())
        for found in judge_answer(asking, exchange, market(), market()):
            assert not isinstance(found, Quoted)


# --- life, pipelining, load -------------------------------------------------------------------------


def test_a_pair_may_go_once_it_was_disabled() -> None:
    both, one = frozenset({"A/B", "C/D"}), frozenset({"C/D"})
    seen = Sighting(disabled=frozenset({"A/B"}))
    assert [r.status for r in judge_retirements([Sighting(both), seen, Sighting(one)])] == [
        CheckStatus.PASSED
    ]
    assert [r.status for r in judge_retirements([Sighting(both), Sighting(one), seen])] == [
        CheckStatus.FAILED
    ]
    assert [r.status for r in judge_retirements([Sighting(both), Sighting(both)])] == [CheckStatus.SKIPPED]


@pytest.mark.parametrize(
    ("order", "closed", "right"),
    [
        (PIPELINED, False, True),
        (PIPELINED[:1], True, True),
        (PIPELINED[:1], False, False),
        (("pairs", "tokens", "blacklist"), False, False),
        ((), True, False),
    ],
)
def test_pipelined_answers_stand_in_order(order: tuple[str, ...], closed: bool, right: bool) -> None:
    data = b"".join(b'HTTP/1.1 200 OK\r\n\r\n{"%b": {}}' % name.encode() for name in order)
    assert faults(judge_pipelined(RawAnswer(data, closed))) == (set() if right else {"hostile.pipelined"})


def test_percentiles_are_nearest_rank() -> None:
    numbers = [float(number) for number in range(1, 101)]
    assert [percentile(numbers, percent) for percent in (50, 95, 99, 100)] == [50, 95, 99, 100]
    assert percentile([7.0], 50) == 7
    assert percentile([], 50) == 0


def test_a_load_is_summed_up_and_judged() -> None:
    samples = [
        LoadSample(10.0, nonce_and_meta=1 << 160, off_bps=Fraction(-3, 2)),
        LoadSample(20.0, nonce_and_meta=1 << 160 | 5, off_bps=Fraction(50)),
        LoadSample(900.0, nonce_and_meta=2 << 160),
        LoadSample(1.0, refused=True),
        LoadSample(5.0, trouble="500"),
    ]
    report = load_report(samples, 2, 0.5)
    assert (report.failed, report.refused, report.duplicate_nonces) == (1, 1, 1)
    assert (report.p50_ms, report.p99_ms, report.drift_max_bps, report.quotes_per_s) == (10, 900, 50, 8)
    assert faults(judge_load(samples, report, 30)) == {
        "load.answers", "load.refusals", "load.distinct-nonces", "load.drift", "load.latency",
    }  # fmt: skip


# --- selection and verdicts -------------------------------------------------------------------------


def test_a_tally_keeps_the_first_faults_and_counts_the_rest() -> None:
    tally = Tally(CHECKS, Selection(only=("prices.sorted", "prices.id*", "auth.*"), skip=("auth.s*",)))
    for number in range(1_000):
        tally.add(rules.fault("prices.sorted", f"level {number}", "order", "none"))
    tally.add(rules.passed("prices.sorted"))
    tally.add(rules.passed("auth.stale"))
    tally.add(rules.skipped("auth.future", "first reason"))
    tally.add(rules.skipped("auth.future", "second reason"))
    found = {verdict.check.id: verdict for verdict in tally.verdicts("nobody came")}
    assert list(found) == list(CHECKS)
    sorted_verdict = found["prices.sorted"]
    assert (sorted_verdict.status, sorted_verdict.fault_count, sorted_verdict.looks) == (
        CheckStatus.FAILED,
        1_000,
        1_001,
    )
    assert [fault.where for fault in sorted_verdict.faults] == [
        f"level {n}" for n in range(FINDINGS_SHOWN_MAX)
    ]
    assert (found["auth.stale"].status, found["auth.stale"].reason) == (
        CheckStatus.SKIPPED,
        "left out by --skip",
    )
    assert found["auth.future"].reason == "first reason"
    assert found["auth.unsigned"].reason == "nobody came"
    assert found["tokens.json"].reason == "not selected by --only"
    assert len(tally) == 2


def test_strict_checks_run_when_asked_for_and_say_so_otherwise() -> None:
    check = CHECKS["prices.both-sides"]
    assert Selection().why_not(check) == "only with --strict"
    assert check in Selection(strict=True)


def test_a_result_of_no_check_is_our_bug() -> None:
    with pytest.raises(KeyError):
        Tally(CHECKS, Selection()).add(Result("prices.nothing", CheckStatus.PASSED))


def test_what_a_maker_says_is_shown_short_and_on_one_line() -> None:
    found = rules.fault("tokens.json", "a\nb", "JSON", rules.Said("x" * 5_000 + "\x1b[31m"))
    assert len(found.got) < 400
    assert "\x1b" not in rules.cut(rules.Said("\x1b[31m"))
    assert found.where == "a\\nb"
    assert rules.fault("pairs.id", "", "the id \ud800", "A/B").expected == "the id \\ud800"


@pytest.mark.parametrize(
    ("url", "host", "port", "path", "header"),
    [
        ("http://maker.example", "maker.example", 80, "", "maker.example"),
        ("https://maker.example/137/", "maker.example", 443, "/137", "maker.example"),
        ("HTTP://127.0.0.1:8080/a/b", "127.0.0.1", 8080, "/a/b", "127.0.0.1:8080"),
        ("https://[::1]:8443/x", "::1", 8443, "/x", "[::1]:8443"),
    ],
)
def test_a_url_is_taken_apart(url: str, host: str, port: int, path: str, header: str) -> None:
    place = read_base_url(url, "URL", ("http", "https"))
    assert (place.host, place.port, place.path, place.host_header) == (host, port, path, header)


@pytest.mark.parametrize("url", ["", "maker", "http://", "http://a:b", "http://a/?", "http://a/#x", "ws://a"])
def test_what_is_no_base_url_is_refused(url: str) -> None:
    if url in ("http://a/?", "http://a/#x"):
        url += "x"
    with pytest.raises(ConfigError, match=r"^URL: expected http or https"):
        read_base_url(url, "URL", ("http", "https"))


@pytest.mark.parametrize(
    ("raw", "failed"),
    [
        (b"[]", "stream.object"),
        (b'{"message": 5}', "stream.message"),
        (b'{"prices": []}', "stream.grids"),
        (b'{"tokens": []}', "stream.entries"),
        (b'{"pairs": "none"}', "stream.entries"),
        (b'{"blacklist": {}}', "stream.blacklist-new"),
        (b'{"order": {}}', "stream.no-order"),
        (b'{"price": {}}', "stream.keys"),
    ],
)
def test_a_later_message_of_another_form_is_a_fault(raw: bytes, failed: str) -> None:
    results = list(judge_update(2, Heard(0, raw), {}))
    assert {result.check for result in results if result.status is CheckStatus.FAILED} == {failed}


def test_the_name_over_which_a_maker_signed_is_said() -> None:
    key, contract = SigningKey(b"\7" * 32), b"\xc0" * 20
    plain = {
        "nonceAndMeta": "1",
        "expiry": 9,
        "makerAmount": "2",
        "takerAmount": "3",
        "taker": "0x" + "33" * 20,
    }
    tokens = {"makerAsset": TOKENS["WETH"].address, "takerAsset": TOKENS["USDC"].address}
    order: dict[str, Any] = plain | tokens | {"maker": to_checksum(key.address)}
    digest32 = order_digest(order, SigningDomain("Cambist RFQ", 5, contract))
    order["signature"] = to_hex(to_65(*key.sign(digest32)))
    asking = Asking("WETH/USDC", LEGS[0], 1, "small", {"userAddress": "0x" + "44" * 20})
    quoted = Quoted(asking, HttpExchange(method="POST", target="/firm"), order)
    results = list(judge_signature(quoted, SigningDomain("AUGUSTUS RFQ", 5, contract), is_contract=False))
    (refused,) = [result for result in results if result.status is CheckStatus.FAILED]
    assert refused.check == "firm.signature"
    assert "the maker's key signed over the domain Cambist RFQ version 1, chain 5" in str(refused)
    results = list(judge_signature(quoted, SigningDomain("Cambist RFQ", 5, contract), is_contract=False))
    assert not faults(results)


# --- Framing --------------------------------------------------------------------------------------------

HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"


def test_interim_answers_are_passed_over() -> None:
    assert head_of(HINTS + HINTS + ANSWER + b"{}") == ANSWER
    assert head_of(HINTS) == head_of(HINTS + ANSWER[:-2]) == b""


@pytest.mark.parametrize(
    ("head", "got"),
    [
        (ANSWER.replace(b"Content-Length: 2", b"Connection: keep-alive"), "no length"),
        (ANSWER.replace(b"HTTP/1.1", b"HTTP/1.0"), "HTTP/1.0"),
        (ANSWER.replace(b"OK", b"OK\r\nConnection: close"), "'connection: close'"),
    ],
)
def test_the_reason_why_a_connection_ends_is_the_answers(head: bytes, got: str) -> None:
    (found,) = [result for result in judge_framing("GET /tokens", head) if result.check == "framing.persists"]
    assert found.got == got
