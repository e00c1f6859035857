"""Fees of bridges' lanes: requests, answers, the fitted line, and a feed that goes on whatever happens."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.bridges.bridge_terms import BridgeFee, fee_of
from cambist.config.errors import BridgeError, InvalidInput
from cambist.config.limits import BRIDGE_ANSWER_BYTES_MAX
from cambist.config.sections.bridges import BridgedToken, BridgeSettings
from cambist.crypto.addresses import parse_address
from cambist.feeds.bridges.fee_answers import FeeAnswer, FeeLane, LaneFee, asking_fee, fitted
from cambist.feeds.bridges.lane_fees import LaneFees, bridge_client
from cambist.feeds.transport.streams import client_tls
from support.patience import until
from support.venue.bridge_apis import OTHER_POOL, POOL, USD, BridgeApis, bridge_apis

HERE, THERE = b"\x5d" * 20, b"\x5e" * 20
TOKENS = (BridgedToken(chains={1: "0x" + HERE.hex(), 10: "0x" + THERE.hex()}),)
AMOUNTS = (10 * USD, 100_000 * USD)
LIMITS = {"minDeposit": "5", "maxDeposit": "500000000000"}
SUGGESTED: dict[str, Any] = {
    "totalRelayFee": {"pct": "1", "total": "1000"},
    "isAmountTooLow": False,
    "spokePoolAddress": POOL,
    "limits": LIMITS,
}


def a_lane(kind: str = "across", url: str = "http://127.0.0.1:9", **more: Any) -> FeeLane:
    settings = BridgeSettings(kind=kind, url=url, tokens=TOKENS, **{"margin_bps": 0} | more)  # type: ignore[arg-type]
    pool = parse_address(POOL) if kind == "across" else b""
    return FeeLane("one", settings, (1, 10), (HERE, THERE), AMOUNTS, pool, (0, 2), (6, 6))


Answers = Sequence[bytes | FeeAnswer]


def fee_from(lane: FeeLane, answers: Answers) -> LaneFee:
    """The fee that follows from these answers, all of which are asked for."""
    found, _ = asked_with(lane, answers)
    return found


def asked_with(lane: FeeLane, answers: Answers) -> tuple[LaneFee, list[str]]:
    """The fee that follows from these answers, and what they were asked by."""
    asking = asking_fee(lane)
    targets = [next(asking)]
    for number, answer in enumerate(answers, 1):
        try:
            targets.append(asking.send(answer if isinstance(answer, FeeAnswer) else FeeAnswer(200, answer)))
        except StopIteration as end:
            assert number == len(answers)
            found: LaneFee = end.value
            return found, targets
    raise AssertionError(targets)


def too_high(most: str) -> FeeAnswer:
    """Refusal of Across, as its service sent it in 2025."""
    told = {"type": "AcrossApiError", "code": "AMOUNT_TOO_HIGH", "status": 400}
    return FeeAnswer(
        400, msgspec.json.encode(told | {"message": f"Amount exceeds max. deposit limit: {most} USDC"})
    )


def amounts_of(targets: Sequence[str]) -> list[int]:
    return [int(target.rpartition("amount=")[2]) for target in targets]


def suggested(**changes: Any) -> bytes:
    return msgspec.json.encode(SUGGESTED | changes)


def total(amount: int) -> dict[str, str]:
    return {"total": str(amount), "pct": "0"}


# --- Requests -------------------------------------------------------------------------------------------


def test_across_is_asked_for_both_amounts() -> None:
    answers: Answers = [suggested(), suggested()]
    _, (first, second) = asked_with(a_lane(), answers)
    ends = f"inputToken=0x{HERE.hex()}&outputToken=0x{THERE.hex()}&originChainId=1&destinationChainId=10"
    assert first.lower() == f"/suggested-fees?{ends}&skipAmountLimit=true&amount=10000000".lower()
    assert second.endswith("&amount=100000000000")
    _, targets = asked_with(msgspec.structs.replace(a_lane(), decimals=(6, 18)), answers)
    assert all("allowUnmatchedDecimals=true" in target for target in targets)


def test_cctp_is_asked_by_domains() -> None:
    tier = b'[{"finalityThreshold":2000,"minimumFee":0}]'
    assert asked_with(a_lane("cctp"), [tier])[1] == ["/v2/burn/USDC/fees/0/2"]


# --- The fit --------------------------------------------------------------------------------------------

AMOUNT = st.integers(1, 10**24)


@given(AMOUNT, AMOUNT, st.integers(0, 10**22), st.integers(0, 10**22))
def test_a_fit_covers_both_fees(low: int, more: int, fee_low: int, fee_high: int) -> None:
    high = low + more
    try:
        fee = fitted((low, fee_low), (high, fee_high))
    except InvalidInput:
        assert (fee_high - fee_low) * 10**6 > more * (10**6 - 1)
        return
    assert fee_of(fee, low) >= fee_low
    assert fee_of(fee, high) >= fee_high


@given(st.integers(0, 900_000), st.integers(0, 10**12), AMOUNT, AMOUNT, AMOUNT)
def test_a_fit_of_a_line_is_little_above_the_line(
    ppm: int, fixed: int, low: int, more: int, between: int
) -> None:
    line = BridgeFee(ppm, fixed)
    high = low + 10**7 * more  # far enough apart for a millionth to matter
    fee = fitted((low, fee_of(line, low)), (high, fee_of(line, high)))
    amount = low + between % (high - low)
    assert ppm <= fee.ppm <= ppm + 1
    assert fee_of(line, amount) - 2 <= fee_of(fee, amount) <= fee_of(line, amount) + amount // 10**6 + 2


def test_a_falling_fee_is_a_fixed_one() -> None:
    assert fitted((10, 7), (1_000, 3)) == BridgeFee(0, 7)


# --- Answers --------------------------------------------------------------------------------------------


def test_a_fee_of_across() -> None:
    answers: Answers = [suggested(totalRelayFee=total(12_000)), suggested(totalRelayFee=total(50_009_000))]
    found = fee_from(a_lane(margin_bps=1_000), answers)
    bare = fitted((AMOUNTS[0], 12_000), (AMOUNTS[1], 50_009_000))
    assert found.fee == BridgeFee(-(-bare.ppm * 11 // 10), -(-bare.fixed * 11 // 10))
    assert (found.least, found.most, found.estimated_ms) == (5, AMOUNTS[1], 30_000)


def test_limits_are_the_narrowest_and_no_amount_beyond_them_is_asked_for() -> None:
    narrow = {"minDeposit": "7", "maxDeposit": "900000000", "maxDepositInstant": "800000000"}
    found, asked = asked_with(a_lane(), [suggested(limits=narrow), suggested(estimatedFillTimeSec=4)])
    assert amounts_of(asked) == [AMOUNTS[0], 800_000_000]
    assert (found.least, found.most, found.estimated_ms) == (7, 800_000_000, 4_000)


def test_a_refused_amount_says_the_limit_up_to_which_the_lane_stays_open() -> None:
    answers: Answers = [
        suggested(totalRelayFee=total(12_000)),
        too_high("60000.0"),
        suggested(totalRelayFee=total(30_009_000)),
    ]
    found, asked = asked_with(a_lane(), answers)
    assert amounts_of(asked) == [AMOUNTS[0], AMOUNTS[1], 60_000 * USD]
    assert found.fee == fitted((AMOUNTS[0], 12_000), (60_000 * USD, 30_009_000))
    assert (found.least, found.most) == (5, 60_000 * USD)


def test_a_lane_for_less_than_the_smaller_amount_stays_open() -> None:
    most = {"minDeposit": "5", "maxDeposit": "7500001"}
    answers: Answers = [too_high("7.500001"), suggested(limits=most), suggested(limits=most)]
    found, asked = asked_with(a_lane(), answers)
    assert amounts_of(asked) == [AMOUNTS[0], 750_000, 7_500_001]
    assert (found.least, found.most) == (5, 7_500_001)


@pytest.mark.parametrize("refusal", [FeeAnswer(400, b'{"code":"AMOUNT_TOO_HIGH"}'), too_high("100000.0")])
def test_a_refusal_without_a_limit_below_the_amount_shrinks_it(refusal: FeeAnswer) -> None:
    answers: Answers = [suggested(), refusal, suggested()]
    found, asked = asked_with(a_lane(), answers)
    assert amounts_of(asked) == [AMOUNTS[0], AMOUNTS[1], AMOUNTS[1] // 10]
    assert found.most == AMOUNTS[1] // 10


@pytest.mark.parametrize(
    "answers",
    [
        [too_high("0.0")],
        [too_high("0.000009")],
        [suggested(limits={"minDeposit": "1", "maxDeposit": "0"})],
        [suggested(limits={"minDeposit": "1", "maxDeposit": "99", "maxDepositInstant": "0"})],
    ],
)
def test_nothing_enters_a_lane_without_liquidity(answers: list[bytes | FeeAnswer]) -> None:
    found = fee_from(a_lane(), answers)
    assert (found.least, found.most) == (1, 0)


def test_limits_that_fall_with_each_answer_end_in_a_failure() -> None:
    answers: Answers = [suggested(), *(too_high(f"{thousand}000.0") for thousand in (60, 50, 40, 30))]
    with pytest.raises(BridgeError, match="limits changed with each of 5"):
        fee_from(a_lane(), answers)


@pytest.mark.parametrize(
    "answer",
    [
        FeeAnswer(400, b'{"type":"AcrossApiError","code":"ROUTE_NOT_ENABLED","status":400}'),
        FeeAnswer(400, b"Sent amount is too low relative to fees"),
        FeeAnswer(429, b"max. deposit limit: 5 USDC"),
        FeeAnswer(204, b""),
    ],
)
def test_another_refusal_is_a_failure(answer: FeeAnswer) -> None:
    with pytest.raises(BridgeError, match=f"answered {answer.status}"):
        fee_from(a_lane(), [suggested(), answer])


def test_a_small_amount_that_is_too_low_is_not_let_across() -> None:
    found = fee_from(a_lane(), [suggested(isAmountTooLow=True), suggested()])
    assert found.least == AMOUNTS[0] + 1


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"spokePoolAddress": OTHER_POOL}, "spokePoolAddress"),
        ({"spokePoolAddress": "0x12"}, "spokePoolAddress"),
        ({"isAmountTooLow": True}, "isAmountTooLow"),
        ({"isAmountTooLow": "no"}, "isAmountTooLow"),
        ({"totalRelayFee": {"pct": "1"}}, "totalRelayFee.total"),
        ({"totalRelayFee": total(-1)}, "totalRelayFee.total"),
        ({"totalRelayFee": total(AMOUNTS[1])}, "totalRelayFee.total"),
        ({"totalRelayFee": total(2**256)}, "totalRelayFee.total"),
        ({"limits": {"minDeposit": "x", "maxDeposit": "1"}}, "limits.minDeposit"),
        ({"limits": {"minDeposit": "1"}}, "limits.maxDeposit"),
        (
            {"limits": {"minDeposit": "1", "maxDeposit": "9", "maxDepositInstant": ""}},
            "limits.maxDepositInstant",
        ),
        ({"estimatedFillTimeSec": -1}, "estimatedFillTimeSec"),
    ],
)
def test_an_answer_of_across_that_is_refused(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        fee_from(a_lane(), [suggested(), suggested(**changes)])
    assert refusal.value.field == field


def test_a_fixed_part_beyond_the_contracts_is_refused() -> None:
    huge = total(2**129)
    with pytest.raises(InvalidInput) as refusal:
        fee_from(a_lane(), [suggested(totalRelayFee=huge), suggested(totalRelayFee=huge)])
    assert refusal.value.field == "totalRelayFee.total"


@pytest.mark.parametrize(
    ("tier", "fee", "ppm"),
    [
        ("fast", "1", 100),
        ("fast", "1.3", 130),
        ("fast", "1.301", 131),
        ("standard", "0", 0),
        (None, "0.01", 1),
    ],
)
def test_a_fee_of_cctp(tier: str | None, fee: str, ppm: int) -> None:
    lane = a_lane("cctp", tier=tier)
    answer = f'[{{"finalityThreshold":{lane.settings.finality},"minimumFee":{fee},"forwardFee":{{"low":1}}}}]'
    found = fee_from(lane, [answer.encode()])
    assert found.fee == BridgeFee(ppm, 0)
    assert found.least == 1
    assert found.estimated_ms == (30_000 if tier == "fast" else 1_140_000)


@pytest.mark.parametrize(
    ("answer", "field"),
    [
        (b"[]", "finalityThreshold"),
        (b'[{"finalityThreshold":1000,"minimumFee":1}]', "finalityThreshold"),
        (b'[{"finalityThreshold":2000,"minimumFee":-1}]', "minimumFee"),
        (b'[{"finalityThreshold":2000,"minimumFee":10000}]', "minimumFee"),
        (b'[{"finalityThreshold":2000,"minimumFee":1e99}]', "[0].minimumFee"),
        (b'[{"finalityThreshold":2000}]', "[0].minimumFee"),
        (b'{"data":[]}', None),
    ],
)
def test_an_answer_of_cctp_that_is_refused(answer: bytes, field: str | None) -> None:
    with pytest.raises(InvalidInput) as refusal:
        fee_from(a_lane("cctp"), [answer])
    assert refusal.value.field == field


# --- The feed -------------------------------------------------------------------------------------------


class Clock:
    """Milliseconds that a test moves."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


@asynccontextmanager
async def a_feed(
    apis: BridgeApis, clock: Clock, kind: str = "across", **more: Any
) -> AsyncIterator[LaneFees]:
    path = "api" if kind == "across" else "iris"
    timing = {"every_s": 0.01, "stale_s": 60.0}
    lane = a_lane(kind, f"http://127.0.0.1:{apis.port}/{path}", **timing | more)
    async with bridge_client(client_tls()) as http, trio.open_nursery() as nursery:
        feed = LaneFees(lane, http=http, wall_ms=clock, random=Random(1))
        nursery.start_soon(feed.run)
        yield feed
        nursery.cancel_scope.cancel()


async def test_a_fee_follows_the_api() -> None:
    clock = Clock()
    async with bridge_apis() as apis, a_feed(apis, clock) as feed:
        assert feed.at(clock.now_ms) is None
        await until(lambda: feed.at(clock.now_ms) is not None)
        first = feed.at(clock.now_ms)
        assert first is not None
        assert first.fee == BridgeFee(apis.ppm, apis.fixed)
        apis.fixed, apis.ppm = 5 * USD, 300
        await until(lambda: (now := feed.at(clock.now_ms)) is not None and now.fee == BridgeFee(300, 5 * USD))
        assert feed.fault == ""


async def test_a_fee_is_stale_once_no_answer_comes() -> None:
    clock = Clock()
    async with bridge_apis() as apis, a_feed(apis, clock) as feed:
        await until(lambda: feed.at(clock.now_ms) is not None)
        apis.down.add("across")
        await until(lambda: feed.statistics().in_a_row > 0)
        assert feed.fault.startswith("answered 503: ")
        held_ms = feed.statistics().answered_ms + 60_000
        assert feed.at(held_ms - 1) is not None
        assert feed.at(held_ms) is None
        clock.now_ms = held_ms
        apis.down.clear()
        await until(lambda: feed.at(clock.now_ms) is not None)
        assert feed.fault == ""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>", "not"),
        (b"{}", "missing"),
        (b'{"a":"' + b"x" * BRIDGE_ANSWER_BYTES_MAX + b'"}', "RemoteProtocolError"),
    ],
)
async def test_an_unusable_answer_is_a_failure_and_the_next_one_counts(body: bytes, said: str) -> None:
    clock = Clock()
    async with bridge_apis() as apis:
        apis.bodies["cctp"] = body
        async with a_feed(apis, clock, "cctp") as feed:
            await until(lambda: feed.statistics().in_a_row > 0)
            assert said in feed.fault or "alid" in feed.fault, feed.fault
            assert feed.at(clock.now_ms) is None
            apis.bodies.clear()
            await until(lambda: feed.at(clock.now_ms) is not None)


async def test_nobody_listens() -> None:
    clock = Clock()
    async with a_feed(BridgeApis(9), clock) as feed:
        await until(lambda: feed.statistics().failures > 1)
        assert feed.fault.startswith("ConnectError: ")


async def test_a_fault_of_ours_does_not_end_the_feed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    clock = Clock()
    monkeypatch.setattr("cambist.feeds.bridges.lane_fees.asking_fee", fails)
    async with bridge_apis() as apis, a_feed(apis, clock) as feed:
        await until(lambda: feed.statistics().failures > 1)
        assert feed.fault == "ZeroDivisionError"
