"""Checks that need a node: funds, approvals, contract signatures, the chain."""

from collections.abc import Callable

import pytest
import trio

from cambist.crypto.eip1271 import SELECTOR4
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.trader.conformance.options import read_base_url
from cambist.engine.trader.conformance.rules import CheckStatus
from cambist.engine.trader.conformance.run import RunOutcome, RunReport
from support.conformance.faulty_maker import CHAIN_ID, DAI, KEY, Maker
from support.conformance.faulty_node import DECIMALS4, LIMITED, TIMED_OUT, Failure, FaultyNode
from support.conformance.faulty_runs import failed, judge, now_ms, told

ONLY = ("firm.signature*", "chain.*")


async def judged_with(
    node: FaultyNode, maker: Maker | None = None, only: tuple[str, ...] = ONLY
) -> RunReport:
    async with trio.open_nursery() as nursery:
        port = await nursery.start(node.run)
        place = read_base_url(f"http://127.0.0.1:{port}", "--node-url", ("http",))
        report = await judge(maker or Maker(now_ms), only, node=place)
        nursery.cancel_scope.cancel()
    return report


def verdict_of(report: RunReport, check_id: str) -> tuple[CheckStatus, str]:
    return next((found.status, found.reason) for found in report.verdicts if found.check.id == check_id)


async def test_a_funded_maker_with_a_key_of_its_own_passes() -> None:
    report = await judged_with(FaultyNode(CHAIN_ID))
    assert report.conforms, told(report)
    assert verdict_of(report, "chain.balance") == (CheckStatus.PASSED, "")
    assert verdict_of(report, "chain.allowance") == (CheckStatus.PASSED, "")
    assert verdict_of(report, "firm.signature") == (CheckStatus.PASSED, "")
    assert verdict_of(report, "chain.contract-signature") == (CheckStatus.SKIPPED, "the maker is no contract")


def _poor(node: FaultyNode) -> None:
    node.funds = 1


def _unapproved(node: FaultyNode) -> None:
    node.allowed = 0


def _elsewhere(node: FaultyNode) -> None:
    node.chain_id = 1


def _refusing(node: FaultyNode) -> None:
    node.contracts = {to_hex(KEY.address)}
    node.accepts = False


def _reverting(node: FaultyNode) -> None:
    node.contracts = {to_hex(KEY.address)}
    node.accepts = None


def _finer(node: FaultyNode) -> None:
    node.decimals[DAI] = 6


def _nowhere(node: FaultyNode) -> None:
    del node.decimals[DAI]


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (_finer, "chain.decimals"),
        (_nowhere, "chain.decimals"),
        (_poor, "chain.balance"),
        (_unapproved, "chain.allowance"),
        (_elsewhere, "chain.id"),
        (_refusing, "chain.contract-signature"),
        (_reverting, "chain.contract-signature"),
    ],
)
async def test_each_fault_of_the_chain_is_found(spoil: Callable[[FaultyNode], None], expected: str) -> None:
    node = FaultyNode(CHAIN_ID)
    spoil(node)
    report = await judged_with(node)
    assert failed(report) == {expected}, told(report)


@pytest.mark.parametrize(("failure", "says"), [(TIMED_OUT, "execution aborted"), (LIMITED, "429")])
@pytest.mark.parametrize(
    ("call", "check"), [(SELECTOR4, "chain.contract-signature"), (DECIMALS4, "chain.decimals")]
)
async def test_a_maker_is_not_blamed_for_a_fault_of_its_node(
    failure: Failure, says: str, call: bytes, check: str
) -> None:
    node = FaultyNode(CHAIN_ID)
    node.contracts, node.failing, node.failure = {to_hex(KEY.address)}, {call}, failure
    report = await judged_with(node)
    status, reason = verdict_of(report, check)
    assert status is CheckStatus.SKIPPED
    assert says in reason


async def test_tokens_are_looked_up_where_no_pair_is_quoted() -> None:
    maker, node = Maker(now_ms), FaultyNode(CHAIN_ID)
    maker.entries["prices"] = lambda prices: {}
    node.decimals[DAI] = 6
    report = await judged_with(node, maker, ("chain.*",))
    assert failed(report) == {"chain.decimals"}
    assert "DAI: expected decimals 6, as decimals() of the contract says, got 18" in told(report)


async def test_a_token_that_has_no_decimals_on_chain_is_not_judged() -> None:
    node = FaultyNode(CHAIN_ID)
    node.decimals[DAI] = None
    report = await judged_with(node)
    assert report.conforms, told(report)


async def test_a_contract_maker_is_asked_and_its_signature_has_any_length() -> None:
    node, maker = FaultyNode(CHAIN_ID), Maker(now_ms)
    node.contracts = {to_hex(KEY.address)}
    maker.order = lambda order: order.update(signature="0x" + "ab" * 130)
    report = await judged_with(node, maker)
    assert report.conforms, told(report)
    assert verdict_of(report, "chain.contract-signature") == (CheckStatus.PASSED, "")
    assert verdict_of(report, "firm.signature")[0] is CheckStatus.SKIPPED


async def test_without_a_node_a_contract_maker_is_reported_as_not_checked() -> None:
    maker = Maker(now_ms)
    maker.order = lambda order: order.update(signature="0x" + "ab" * 130)
    report = await judge(maker, ONLY, contract_maker=True)
    assert report.conforms, told(report)
    assert verdict_of(report, "firm.signature") == (
        CheckStatus.SKIPPED,
        "--contract-maker without --node-url",
    )
    assert failed(await judge(maker, ONLY)) == {"firm.signature-length"}


async def test_a_node_that_fails_is_no_fault_of_the_maker() -> None:
    node = FaultyNode(CHAIN_ID)
    node.funds = None
    report = await judged_with(node)
    assert report.outcome is RunOutcome.INCONCLUSIVE, told(report)
    status, reason = verdict_of(report, "chain.allowance")
    assert status is CheckStatus.SKIPPED
    assert "execution reverted" in reason
