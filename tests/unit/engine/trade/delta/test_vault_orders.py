"""Orders from vaults without a chain: their parts, the shares that they need, what a vault's answers mean."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.contracts.abi import selector, uint_word
from cambist.codecs.contracts.delta_calldata import Execution, agent_id, settle_productive
from cambist.codecs.contracts.vault_calldata import ASSET, preview_redeem, preview_withdraw
from cambist.codecs.trading_token import NATIVE_TOKEN
from cambist.config.errors import (
    InsufficientBalance,
    InvalidProductiveOrderParams,
    Reverted,
    ServiceUnavailable,
)
from cambist.config.limits import DELTA_SHARES_MAX, VAULT_GAS_MAX
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.chain.holdings import Holding
from cambist.engine.chain.port import EthCall
from cambist.engine.store.rows import IntentCause
from cambist.engine.trade.delta.bids.bids import (
    Rejection,
    RoundOrder,
    answer_of,
    asked_of,
    read_answer,
    shown,
)
from cambist.engine.trade.delta.orders.fillable import promised, still_given
from cambist.engine.trade.delta.orders.funds import Fund, MissingFund, Needs, lacks_of, needs_of, told_of
from cambist.engine.trade.delta.orders.live_orders import LiveOrder
from cambist.engine.trade.delta.orders.terms import next_part, part_of, terms_of, whole_of
from cambist.engine.trade.delta.orders.vault import (
    VaultWorth,
    is_refused,
    preview_call,
    previewed,
    trial_call,
)
from cambist.engine.trade.delta.orders.vault_checks import (
    check_shares,
    check_strategy,
    shares_needed,
    vault_calls,
)
from cambist.engine.trade.delta.resting.resting_price import left_of, rate_of
from cambist.engine.trade.delta.settlement.failures import SettlementFailure, failure_of
from support.delta.bidding import (
    ONE,
    SIGNATURE,
    USDC,
    USDC_ONE,
    VAULT,
    WETH,
    a_delta_order,
    a_productive_order,
    asked_for,
)

FAIR = 2_500 * USDC_ONE
SHARES = a_productive_order(shares=2 * ONE)
AMOUNT = a_productive_order(use_shares=False, shares=2 * ONE)


def a_live(order: Any, worth: VaultWorth | None = None) -> LiveOrder:
    asked = asked_for(order)
    row: Any = SimpleNamespace(order_hash=asked.order_hash)
    return LiveOrder(row, order, asked.document, asked.terms, worth=worth)


# --- Parts ----------------------------------------------------------------------------------------------


def test_a_sale_of_shares_is_counted_in_shares_and_estimated_in_source() -> None:
    part = next_part(SHARES, 0)
    assert part is not None
    assert (part.amount, part.src_amount, part.dest_amount) == (2 * ONE, ONE, 2_400 * USDC_ONE)
    rest = next_part(SHARES, ONE)
    assert rest is not None
    assert (rest.amount, rest.src_amount, rest.dest_amount) == (ONE, ONE // 2, 1_200 * USDC_ONE)
    assert next_part(SHARES, 2 * ONE) is None


def test_a_sale_of_an_amount_is_counted_in_source() -> None:
    part = next_part(AMOUNT, 0)
    assert part is not None
    assert (part.amount, part.src_amount, whole_of(AMOUNT)) == (ONE, ONE, ONE)
    assert part_of(AMOUNT, ONE, ONE // 3).dest_amount == 800 * USDC_ONE


def test_terms_name_the_shares_that_the_contract_takes() -> None:
    terms = terms_of(SHARES)
    assert (terms.src_token, terms.dest_token) == (WETH, USDC)
    assert (terms.held_token, terms.held_total) == (VAULT, 2 * ONE)


def test_a_part_is_worth_what_the_vault_last_stated_of_that_part() -> None:
    worth = VaultWorth(2 * ONE, 2 * ONE, 3 * ONE, is_given=True)
    part = a_live(SHARES, worth).part()
    assert part is not None
    assert (part.amount, part.src_amount) == (2 * ONE, 3 * ONE)
    for other in (
        VaultWorth(ONE, ONE, 3 * ONE, is_given=True),
        VaultWorth(2 * ONE, 0, 0, is_given=True),
        None,
    ):
        estimated = a_live(SHARES, other).part()
        assert estimated is not None
        assert estimated.src_amount == ONE, "the signed estimate"
    fixed = a_live(AMOUNT, VaultWorth(ONE, ONE // 2, ONE, is_given=True)).part()
    assert fixed == next_part(AMOUNT, 0)


def test_the_rate_that_a_resting_order_needs_falls_with_its_yield() -> None:
    live = a_live(SHARES)
    before = rate_of(live)
    live.worth = VaultWorth(2 * ONE, 2 * ONE, 2 * ONE, is_given=True)
    after = rate_of(live)
    assert after[0] * before[1] * 2 == after[1] * before[0]
    assert left_of(live) == (2 * ONE, 2_400 * USDC_ONE)


# --- Funds ----------------------------------------------------------------------------------------------


def test_shares_are_needed_as_the_vault_takes_them() -> None:
    assert needs_of(SHARES, 0) == Needs(2 * ONE, 2 * ONE, is_native=False)
    assert needs_of(AMOUNT, 0) == Needs(2 * ONE, 2 * ONE, is_native=False), "the bound, before it is read"
    worth = VaultWorth(ONE, 3 * ONE // 4, ONE, is_given=True)
    assert needs_of(AMOUNT, 0, worth) == Needs(3 * ONE // 4, 3 * ONE // 4, is_native=False)
    assert needs_of(AMOUNT, ONE // 2, worth).part == ONE, "the statement was about another amount"
    assert needs_of(a_productive_order(permit=b"\1"), 0).allowance == 0
    assert needs_of(SHARES, 2 * ONE) == Needs(0, 0, is_native=False)


@pytest.mark.parametrize(
    ("order", "worth", "lack", "says"),
    [
        (
            SHARES,
            VaultWorth(2 * ONE, 0, 0, is_given=True),
            MissingFund(Fund.VAULT, ONE, None),
            f"does not say how many shares give {ONE} of srcToken",
        ),
        (
            AMOUNT,
            VaultWorth(ONE, 2 * ONE + 1, ONE, is_given=True),
            MissingFund(Fund.BOUND, 2 * ONE + 1, 2 * ONE),
            f"takes {2 * ONE + 1} shares, and the order gives at most {2 * ONE}",
        ),
        (
            SHARES,
            VaultWorth(2 * ONE, 2 * ONE, 3 * ONE, is_given=False),
            MissingFund(Fund.VAULT, 3 * ONE, 0),
            f"does not give {3 * ONE} of srcToken in a trial settlement",
        ),
    ],
    ids=["mute", "bound", "refuses"],
)
def test_a_vaults_fault_is_missing_funds(order: Any, worth: VaultWorth, lack: MissingFund, says: str) -> None:
    needs = needs_of(order, 0, worth)
    assert lacks_of(needs, Holding(5 * ONE, 5 * ONE)) == (lack,)
    ((code, text),) = told_of([lack], VAULT)
    assert code == f"{lack.fund.value}Lacks"
    assert text.endswith(says)


def test_a_vault_is_not_blamed_for_what_its_owner_lacks() -> None:
    needs = needs_of(SHARES, 0, VaultWorth(2 * ONE, 2 * ONE, ONE, is_given=False))
    lacks = lacks_of(needs, Holding(ONE, 0))
    assert [lack.fund for lack in lacks] == [Fund.BALANCE, Fund.ALLOWANCE]


@pytest.mark.parametrize("permit", [b"", b"\1"])
def test_a_permit_stands_for_the_allowance_of_shares_too(permit: bytes) -> None:
    order = a_productive_order(use_shares=False, shares=2 * ONE, permit=permit)
    for worth, shares in ((None, 2 * ONE), (VaultWorth(ONE, ONE // 2, ONE, is_given=True), ONE // 2)):
        needs = needs_of(order, 0, worth)
        assert needs == Needs(shares, 0 if permit else shares, is_native=False)


def test_an_order_that_sells_native_tokens_commits_nothing_of_a_balance() -> None:
    native, sale = a_delta_order(src_token=NATIVE_TOKEN), a_delta_order()
    assert promised([(native, 0), (sale, ONE // 4), (SHARES, ONE)]) == {WETH: 3 * ONE // 4, VAULT: ONE}
    assert promised([(native, 0)]) == {}


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(0, 10**6))
def test_an_order_commits_no_less_than_its_parts_take(shares: int, amount: int, filled: int) -> None:
    order = a_productive_order(use_shares=False, shares=shares, src_amount=amount)
    left = max(amount - filled, 0)
    most = still_given(order, min(filled, amount))
    assert most == -(-shares * left // amount)
    assert promised([(order, min(filled, amount))]) == {VAULT: most}


# --- A vault's answers ----------------------------------------------------------------------------------


def test_a_vault_is_asked_for_the_other_side_of_the_amount() -> None:
    assert preview_call(SHARES, 7).data == preview_redeem(7)
    assert preview_call(AMOUNT, 7).data == preview_withdraw(7)
    assert preview_call(AMOUNT, 7).to == VAULT
    assert previewed(SHARES, 7, uint_word(9)) == VaultWorth(7, 7, 9, is_given=True)
    assert previewed(AMOUNT, 7, uint_word(9)) == VaultWorth(7, 9, 7, is_given=True)


@pytest.mark.parametrize("answer", [b"", b"\1" * 31, Reverted("no"), uint_word(0)])
def test_a_vault_that_states_nothing_is_told_apart(answer: bytes | Exception) -> None:
    for order in (SHARES, AMOUNT):
        assert not previewed(order, 7, answer).is_told
        assert previewed(order, 7, answer) == VaultWorth(7, 0, 0, is_given=True)


@pytest.mark.parametrize(
    ("shares", "assets", "is_told"), [(1, 1, True), (0, 1, False), (1, 0, False), (0, 0, False)]
)
def test_a_statement_is_of_a_share_and_a_unit_at_least(shares: int, assets: int, is_told: bool) -> None:
    assert VaultWorth(7, shares, assets, is_given=True).is_told is is_told


@pytest.mark.parametrize("order", [SHARES, AMOUNT])
def test_a_trial_settles_the_previewed_amount_without_an_agents_calls(order: Any) -> None:
    delta, relayer, worth = b"\xde" * 20, b"\x4e" * 20, VaultWorth(7, 7, 9, is_given=True)
    data = settle_productive(order, SIGNATURE, 7, Execution(0, 9, ()))
    call = trial_call(order, SIGNATURE, worth, delta, relayer, 5_000)
    assert call == EthCall(delta, data, relayer, gas_max=5_000)


def test_a_vault_is_asked_within_a_bound_of_gas() -> None:
    asset = EthCall(VAULT, ASSET, gas_max=VAULT_GAS_MAX)
    for order, whole in ((SHARES, 2 * ONE), (AMOUNT, ONE)):
        preview = preview_call(order, whole)
        assert preview.gas_max == VAULT_GAS_MAX
        assert vault_calls(order) == {"asset": asset, "preview": preview}


def test_an_order_may_sell_from_vaults_of_the_chains_strategies_alone() -> None:
    check_strategy(VAULT, [WETH, VAULT], "order.strategy")
    with pytest.raises(InvalidProductiveOrderParams, match="a vault of GET"):
        check_strategy(VAULT, [WETH], "order.strategy")


def test_a_trial_that_stops_at_the_price_shows_that_the_vault_gives() -> None:
    words = bytes(32)
    assert not is_refused(Reverted("price", selector("BelowMinimum(uint256,uint256)") + 2 * words))
    assert not is_refused(b"settled for nothing: the order has no minimum")
    for error in ("RedemptionFailed(address)", "TooManyShares(uint256,uint256)", "PullFailed(address)"):
        assert is_refused(Reverted("vault", selector(error) + words))


def test_what_a_new_order_needs_of_its_vault() -> None:
    good: dict[str, bytes | Exception] = {"asset": bytes(12) + WETH, "preview": uint_word(ONE // 2)}
    assert shares_needed(AMOUNT, good) == ONE // 2
    assert shares_needed(SHARES, good) == 2 * ONE
    with pytest.raises(ServiceUnavailable):
        shares_needed(AMOUNT, good | {"asset": Reverted("no")})
    with pytest.raises(InvalidProductiveOrderParams, match="the vault's asset"):
        shares_needed(AMOUNT, good | {"asset": bytes(12) + USDC})
    with pytest.raises(InsufficientBalance, match="gives srcToken for"):
        shares_needed(SHARES, good | {"preview": uint_word(0)})
    with pytest.raises(InsufficientBalance, match="which the vault takes for srcAmount"):
        shares_needed(AMOUNT, good | {"preview": uint_word(2 * ONE + 1)})


def test_an_order_has_a_share_at_least_and_no_more_than_the_contract_counts() -> None:
    for shares in (1, DELTA_SHARES_MAX):
        check_shares(shares, "order.shares")
    for shares in (0, DELTA_SHARES_MAX + 1):
        with pytest.raises(InvalidProductiveOrderParams, match=f"got {shares}$"):
            check_shares(shares, "order.shares")


# --- Whose fault ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("owners", [None, frozenset(), frozenset({b"\0" * 4})])
@pytest.mark.parametrize("error", ["RedemptionFailed(address)", "TooManyShares(uint256,uint256)"])
def test_a_vaults_errors_are_the_owners_whatever_a_call_shows(error: str, owners: Any) -> None:
    error4 = selector(error)
    found = failure_of(IntentCause.REVERTED, error4, owners, SHARES)
    assert found is SettlementFailure.FUNDS


def test_calls_of_an_agent_behind_a_vault_fail_in_doubt() -> None:
    error4 = selector("StepFailed(uint256,bytes)")
    assert failure_of(IntentCause.REVERTED, error4, order=SHARES) is SettlementFailure.DOUBTFUL
    assert failure_of(IntentCause.REVERTED, error4) is SettlementFailure.AGENTS
    done = failure_of(IntentCause.REVERTED, selector("NonceUsed(uint256)"), order=SHARES)
    assert done is SettlementFailure.ORDER_DONE


# --- Bids -----------------------------------------------------------------------------------------------


def test_a_bid_on_shares_has_them_give_what_agents_were_asked_for_and_the_rest_returned() -> None:
    worth = VaultWorth(2 * ONE, 2 * ONE, 3 * ONE, is_given=True)
    asked = asked_of(a_live(SHARES, worth))
    assert asked is not None
    assert shown(asked).src_amount == str(3 * ONE)
    (bid,) = bids_on(asked)
    (part,) = bid.parts
    assert (part.given, part.leftovers) == (3 * ONE, (WETH,))
    execution = Execution(FAIR, 3 * ONE, (), (WETH,), agent_id("ann"))
    assert bid.calldata == settle_productive(SHARES, SIGNATURE, 2 * ONE, execution)


def test_a_bid_on_an_amount_is_a_sales() -> None:
    asked = asked_for(AMOUNT)
    (bid,) = bids_on(asked)
    (part,) = bid.parts
    assert (part.given, part.leftovers) == (0, ())
    execution = Execution(FAIR, 0, (), (), agent_id("ann"))
    assert bid.calldata == settle_productive(AMOUNT, SIGNATURE, ONE, execution)


def test_no_order_from_a_vault_is_crossed() -> None:
    both = [asked_for(order, number) for number, order in enumerate((SHARES, AMOUNT))]
    (refused,) = bids_on(*both)
    assert isinstance(refused, Rejection)
    assert "no other type can be crossed" in refused.detail


def bids_on(*asked: RoundOrder) -> list[Any]:
    """Reads of the venue for one bid on these orders."""
    parts = [{"orderHash": to_hex(one.order_hash), "promisedAmount": str(FAIR)} for one in asked]
    answer = answer_of("ann", 0, 1, msgspec.json.encode({"bids": [{"parts": parts}]}))
    return list(read_answer(answer, {one.order_hash: one for one in asked}))
