"""POST /firm: signed quotes, refusals with their reasons, reserved funds."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.eip712_orders.nonce_and_meta import firm_user, pack_firm
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, rfq_domain_separator
from cambist.codecs.messages.maker_messages import FirmOrder, PriceGrid, decode_firm_response
from cambist.config.errors import (
    ConfigError,
    FirmRefused,
    InvalidInput,
    RequestError,
    ServiceUnavailable,
    TradingStopped,
)
from cambist.crypto.hexadecimal import parse_hex
from cambist.crypto.signatures import signer
from cambist.engine.host.safety.halts import Halts
from cambist.engine.roles.maker.role import ChainRole
from support.makers.maker_role import (
    CHAIN_ID,
    CONTRACT,
    DAI,
    MAKER,
    NOW_MS,
    TAKER,
    USDC,
    USER,
    WETH,
    a_chain,
    firm_request,
    settings_of,
)

DIGEST_OF = RFQ_ORDER.compiled.digest_for(
    rfq_domain_separator("AUGUSTUS RFQ", CHAIN_ID, bytes.fromhex(CONTRACT[2:]))
)
ONE = 10**18


def quoted(role: ChainRole, now_ms: int = NOW_MS, **request: Any) -> FirmOrder:
    response = decode_firm_response(role.desk.answer(firm_request(**request), now_ms))
    assert isinstance(response.order, FirmOrder)
    return response.order


def refused(role: ChainRole, now_ms: int = NOW_MS, **request: Any) -> RequestError:
    before = (len(role.desk.ledger), [holding.reserved for holding in role.holdings])
    with pytest.raises(RequestError) as caught:
        role.desk.answer(firm_request(**request), now_ms)
    assert (len(role.desk.ledger), [holding.reserved for holding in role.holdings]) == before
    return caught.value


@pytest.mark.parametrize("nothing", ["", None])
def test_an_amount_that_a_language_cannot_leave_out_is_absent(nothing: str | None) -> None:
    """As Go writes a string without `omitempty`, and Jackson a null."""
    order = quoted(a_chain(), makerAmount=nothing)
    assert (order.maker_amount, order.taker_amount) == (
        quoted(a_chain()).maker_amount,
        quoted(a_chain()).taker_amount,
    )


def signed_by(order: FirmOrder) -> bytes:
    members = msgspec.to_builtins(order)
    struct = RFQ_ORDER.from_wire({name: members[name] for name in members if name != "signature"})
    return signer(DIGEST_OF(struct), parse_hex(order.signature, ""))


def reserved(role: ChainRole) -> dict[str, int]:
    return {f"0x{holding.token.hex()}": holding.reserved for holding in role.holdings}


# --- Signed quotes ------------------------------------------------------------------------------------

AMOUNTS = [
    # the user sells 1 WETH, sells 2, buys 2500 USDC for WETH, buys past the first level
    ({"takerAmount": str(ONE)}, "2500000000", str(ONE)),
    ({"takerAmount": str(2 * ONE)}, "4999500000", str(2 * ONE)),
    ({"takerAmount": None, "makerAmount": "2500000000"}, "2500000000", str(ONE)),
    ({"takerAmount": None, "makerAmount": "2500000001"}, "2500000001", "1000000000400080017"),
    # the user buys WETH with USDC
    ({"makerAsset": WETH, "takerAsset": USDC, "takerAmount": "2501000000"}, str(ONE), "2501000000"),
    (
        {"makerAsset": WETH, "takerAsset": USDC, "takerAmount": "2501000001"},
        "1000000000399680255",
        "2501000001",
    ),
    (
        {"makerAsset": WETH, "takerAsset": USDC, "takerAmount": None, "makerAmount": str(ONE + 1)},
        str(ONE + 1),
        "2501000001",
    ),
]


@pytest.mark.parametrize(("request_", "maker_amount", "taker_amount"), AMOUNTS)
def test_amounts_come_from_the_book_and_round_for_the_maker(
    request_: dict[str, Any], maker_amount: str, taker_amount: str
) -> None:
    order = quoted(a_chain(), **request_)
    assert (order.maker_amount, order.taker_amount) == (maker_amount, taker_amount)


def test_the_order_is_signed_by_the_maker_over_what_it_says() -> None:
    order = quoted(a_chain())
    nonce_and_meta = int(order.nonce_and_meta)
    assert signed_by(order) == parse_hex(MAKER, "")
    assert (order.maker, order.taker, order.maker_asset, order.taker_asset) == (MAKER, TAKER, USDC, WETH)
    assert firm_user(nonce_and_meta) == parse_hex(USER, "")
    assert order.expiry == NOW_MS // 1000 + 150
    assert order.signature == order.signature.lower()


def test_a_contract_maker_is_named_in_the_order_and_the_key_signs() -> None:
    wallet = "0x00000000000000000000000000000000000000c0"
    order = quoted(a_chain(maker=wallet))
    assert order.maker == wallet
    assert signed_by(order) == parse_hex(MAKER, "")


def test_addresses_come_in_any_case_and_are_echoed_as_they_came() -> None:
    def shout(address: str) -> str:
        return "0x" + address[2:].upper()

    order = quoted(
        a_chain(),
        makerAsset=shout(USDC),
        takerAsset=shout(WETH),
        takerAddress=shout(TAKER),
        userAddress=shout(USER),
    )
    assert (order.maker_asset, order.taker_asset, order.taker) == (shout(USDC), shout(WETH), shout(TAKER))


def test_a_message_is_sent_along_where_it_is_set() -> None:
    role = a_chain(message="maintenance at noon", blacklist=(MAKER,))
    answer = msgspec.json.decode(role.desk.answer(firm_request(), NOW_MS))
    assert (answer.keys(), answer["message"]) == ({"order", "message"}, "maintenance at noon")
    assert a_chain().desk.answer(firm_request(), NOW_MS).startswith(b'{"order":{')
    refused_user = role.desk.answer(firm_request(userAddress=MAKER), NOW_MS)
    assert msgspec.json.decode(refused_user) == {"message": "maintenance at noon"}


def test_unknown_keys_are_ignored() -> None:
    assert quoted(a_chain(), partner="acme", special=True, nested={"a": [1]}).maker_amount == "2500000000"


def test_no_two_quotes_share_a_nonce_and_the_random_part_is_spread() -> None:
    role = a_chain()
    randoms = [int(quoted(role, takerAmount="1000000000000000").nonce_and_meta) >> 160 for _ in range(200)]
    assert len(set(randoms)) == 200
    assert sum(random >> 95 for random in randoms) in range(50, 151)


def test_the_random_source_is_passed_in() -> None:
    order = quoted(a_chain(random96=lambda: bytes(11) + b"\x05"))
    assert int(order.nonce_and_meta) == pack_firm(parse_hex(USER, ""), 5)


# --- Refusals -----------------------------------------------------------------------------------------

REFUSALS: list[tuple[dict[str, Any], type[RequestError], str]] = [
    ({"takerAmount": None}, InvalidInput, "neither"),
    ({"takerAmount": "", "makerAmount": ""}, InvalidInput, "neither"),
    ({"makerAmount": "1"}, InvalidInput, "both"),
    ({"takerAmount": "0"}, FirmRefused, "Amount out of range: takerAmount"),
    ({"takerAmount": "-1"}, InvalidInput, "takerAmount"),
    ({"takerAmount": "1.5"}, InvalidInput, "takerAmount"),
    ({"takerAmount": "1e18"}, InvalidInput, "takerAmount"),
    ({"takerAmount": 5}, InvalidInput, "takerAmount"),
    ({"takerAmount": str(2**256)}, InvalidInput, "takerAmount"),
    ({"takerAmount": "9" * 78}, InvalidInput, "takerAmount"),
    ({"takerAmount": str(2**256 - 1)}, FirmRefused, "Beyond depth: takerAmount"),
    ({"takerAmount": str(13 * ONE + 1)}, FirmRefused, "Beyond depth"),
    ({"takerAmount": None, "makerAmount": "32399000001"}, FirmRefused, "Beyond depth: makerAmount"),
    ({"takerAmount": "1"}, FirmRefused, "Amount out of range: takerAmount"),
    ({"makerAsset": "0x" + "12" * 20}, FirmRefused, "Unknown token: makerAsset"),
    ({"takerAsset": "0x" + "12" * 20}, FirmRefused, "Unknown token: takerAsset"),
    ({"makerAsset": DAI}, FirmRefused, "Unknown token: makerAsset"),  # listed, but in no pair
    ({"makerAsset": WETH}, FirmRefused, "Pair not quoted"),
    ({"makerAsset": "WETH"}, InvalidInput, "makerAsset"),
    ({"userAddress": "0x12"}, InvalidInput, "userAddress"),
    ({"userAddress": None}, InvalidInput, "userAddress"),
    ({"takerAddress": USER}, FirmRefused, "Taker not allowed: takerAddress"),
    ({"takerAddress": "me"}, InvalidInput, "takerAddress"),
]


@pytest.mark.parametrize(("request_", "error", "words"), REFUSALS, ids=str)
def test_each_refusal_is_an_error_of_its_own(
    request_: dict[str, Any], error: type[RequestError], words: str
) -> None:
    fault = refused(a_chain(), **request_)
    assert type(fault) is error
    assert words in fault.detail


def test_a_body_that_is_no_json_is_refused() -> None:
    for raw in (b"", b"{", b"[]", b"\xff", b"null", b'{"makerAsset":1}'):
        with pytest.raises(InvalidInput):
            a_chain().desk.answer(raw, NOW_MS)


def test_a_stale_price_is_not_signed_and_a_fresh_one_is() -> None:
    role = a_chain()
    assert quoted(role, NOW_MS + 10_000)
    assert refused(role, NOW_MS + 10_001).detail.startswith("Price is stale")


def test_a_retired_an_empty_and_a_halted_pair_are_not_quoted() -> None:
    assert refused(a_chain(grid=None)).detail.startswith("Pair not quoted")
    assert refused(a_chain(grid=PriceGrid())).detail.startswith("Pair not quoted")
    role = a_chain()
    role.desk.obey(Halts(pairs=frozenset({(CHAIN_ID, "WETH/USDC")})))
    assert refused(role).detail.startswith("Pair not quoted")
    settings = settings_of()
    assert settings.maker
    pair = msgspec.structs.replace(settings.maker.chains[CHAIN_ID].pairs["WETH/USDC"], retired=True)
    assert refused(a_chain(pairs={"WETH/USDC": pair})).detail.startswith("Pair not quoted")


def test_a_side_that_is_cleared_is_beyond_depth() -> None:
    role = a_chain(grid=PriceGrid(asks=(("2501", "1"),)))
    assert refused(role).detail.startswith("Beyond depth")
    assert quoted(role, makerAsset=WETH, takerAsset=USDC, takerAmount="2501000000").maker_amount == str(ONE)


def test_trading_that_is_stopped_and_funds_that_are_unknown() -> None:
    role = a_chain()
    role.desk.obey(Halts(everything=True))
    assert type(refused(role)) is TradingStopped
    role.desk.obey(Halts())
    role.desk.withhold("funds", "no answer")
    assert type(refused(role)) is ServiceUnavailable


# --- Blacklist ----------------------------------------------------------------------------------------


def test_a_blacklisted_user_gets_a_success_without_order() -> None:
    role = a_chain(blacklist=(USER,))
    answer = role.desk.answer(firm_request(userAddress=USER.upper().replace("X", "x")), NOW_MS)
    assert "order" not in msgspec.json.decode(answer)
    assert role.desk.blacklisted == 1
    assert len(role.desk.ledger) == 0


def test_a_user_who_leaves_quotes_unused_is_blacklisted_for_a_time() -> None:
    role = a_chain(unused_quotes_max=3, blacklist_s=600)
    small: dict[str, Any] = {"takerAmount": "1000000000000000"}
    for _ in range(3):
        quoted(role, **small)
    assert msgspec.json.decode(role.desk.answer(firm_request(**small), NOW_MS)).keys() == {"message"}
    assert list(role.blacklist.users) == [parse_hex(USER, "")]
    assert quoted(role, userAddress=MAKER, **small)
    role.blacklist.release_expired(NOW_MS // 1000 + 600)
    assert role.blacklist.json() == b"[]"


def test_a_fill_gives_the_user_its_quotes_back() -> None:
    role = a_chain(unused_quotes_max=2)
    small: dict[str, Any] = {"takerAmount": "1000000000000000"}
    quoted(role, **small)
    quoted(role, **small)
    role.desk.ledger.settle(role.desk.ledger.promises()[0], 1)
    assert quoted(role, **small)
    assert "order" not in msgspec.json.decode(role.desk.answer(firm_request(**small), NOW_MS))


def test_unused_quotes_are_forgotten_after_their_window() -> None:
    role = a_chain(unused_quotes_max=1, unused_window_s=1_000, price_life_ms=10**9)
    quoted(role)
    later = NOW_MS + (150 + 15 + 1_000 + 2) * 1_000
    assert quoted(role, later)


# --- Funds and bounds ---------------------------------------------------------------------------------


def test_live_quotes_are_reserved_until_they_expire() -> None:
    role = a_chain()
    quoted(role, takerAmount=str(2 * ONE))
    assert reserved(role)[USDC] == 4_999_500_000
    role.desk.ledger.release_expired(NOW_MS // 1000 + 165)  # expiry and the grace: still held
    assert reserved(role)[USDC] == 4_999_500_000
    role.desk.ledger.release_expired(NOW_MS // 1000 + 166)
    assert reserved(role)[USDC] == 0


def test_promises_stay_below_the_funds() -> None:
    role = a_chain()
    holding = next(holding for holding in role.holdings if f"0x{holding.token.hex()}" == USDC)
    holding.funds = 5_000_000_001
    quoted(role)
    assert quoted(role)
    assert refused(role).detail.startswith("Not enough funds")
    holding.funds = 7_500_000_000  # funds must be strictly above what is promised
    assert refused(role).detail.startswith("Not enough funds")
    holding.funds += 1
    assert quoted(role)


def test_a_fill_shrinks_its_promise_and_a_reorganisation_restores_it() -> None:
    role = a_chain()
    quoted(role)
    (promise,) = role.desk.ledger.promises()
    exposure = role.board.pairs["WETH/USDC"].exposure
    for remaining, left in ((0, 2_500), (1_000_000_001, 1_000), (1, 0), (0, 2_500), (500_000_001, 500)):
        role.desk.ledger.settle(promise, remaining)
        assert reserved(role)[USDC] == exposure.notional == left * 10**6
        assert exposure.base_sold == -ONE
    role.desk.ledger.release_expired(NOW_MS // 1000 + 10_000)
    assert (reserved(role)[USDC], exposure.notional, len(role.desk.ledger)) == (0, 0, 0)
    assert exposure.base_sold == -ONE * 4 // 5  # what was bought stays


def test_with_a_node_quotes_are_released_by_the_time_of_its_block() -> None:
    role = a_chain(price_life_ms=10**9)
    role.desk.chain_time_s = NOW_MS // 1000
    quoted(role)
    quoted(role, NOW_MS + 400_000, takerAmount=str(10**15))
    assert len(role.desk.ledger) == 2
    role.desk.chain_time_s = NOW_MS // 1000 + 166
    quoted(role, NOW_MS + 400_000, takerAmount=str(10**15))
    assert len(role.desk.ledger) == 2


def test_live_quotes_are_looked_at_in_turn() -> None:
    role = a_chain()
    ledger = role.desk.ledger
    for second in range(7):
        quoted(role, NOW_MS + 1_000 * second, takerAmount="1000000000000000")
    quotes = ledger.promises()
    assert ledger.take_turns(3) == quotes[:3]
    ledger.release_expired(NOW_MS // 1000 + 167)  # two are gone
    assert ledger.take_turns(3) == quotes[3:6]
    assert ledger.take_turns(3) == quotes[6:]
    assert ledger.take_turns(10) == quotes[2:]
    ledger.settle(quotes[0], 1)
    assert reserved(role)[USDC] == sum(promise.left for promise in quotes[2:])


def test_releasing_is_done_in_slices() -> None:
    role = a_chain()
    for _ in range(10):
        quoted(role, takerAmount="1000000000000000")
    later = NOW_MS // 1000 + 1_000
    assert role.desk.ledger.release_expired(later, 4)
    assert len(role.desk.ledger) == 6
    assert role.desk.ledger.release_expired(later, 4)
    assert not role.desk.ledger.release_expired(later, 4)
    assert reserved(role)[USDC] == 0


def test_a_pair_has_a_notional_for_one_quote_and_for_all_open_ones() -> None:
    settings = settings_of()
    assert settings.maker
    pair = settings.maker.chains[CHAIN_ID].pairs["WETH/USDC"]
    role = a_chain(pairs={"WETH/USDC": msgspec.structs.replace(pair, notional_max="2500")})
    assert quoted(role)
    assert refused(role, takerAmount=str(ONE + 10**12)).detail.startswith("Notional limit")
    assert refused(role, makerAsset=WETH, takerAsset=USDC, takerAmount="2500000001").detail.startswith(
        "Notional limit"
    )
    role = a_chain(pairs={"WETH/USDC": msgspec.structs.replace(pair, open_notional_max="4000")})
    assert quoted(role)
    assert refused(role).detail.startswith("Notional limit")
    role.desk.ledger.release_expired(NOW_MS // 1000 + 166)
    assert quoted(role)


def test_a_token_has_a_most_that_one_quote_gives() -> None:
    settings = settings_of()
    assert settings.maker
    tokens = settings.maker.chains[CHAIN_ID].tokens
    capped = {**tokens, "USDC": msgspec.structs.replace(tokens["USDC"], quote_max="2499.999999")}
    assert refused(a_chain(tokens=capped)).detail.startswith("Notional limit")


def test_only_so_many_quotes_may_be_live() -> None:
    role = a_chain(live_quotes_max=2)
    quoted(role, takerAmount="1000000000000000")
    quoted(role, takerAmount="1000000000000000")
    assert refused(role, takerAmount="1000000000000000").detail.startswith("Too many open quotes")


def test_the_keys_policy_is_the_last_word() -> None:
    amounts = f'[keys.maker.policy.amounts_max]\n"{CHAIN_ID}:{WETH}" = "1"\n"{CHAIN_ID}:{DAI}" = "1"\n'
    role = a_chain(settings_of(f'{amounts}"{CHAIN_ID}:{USDC}" = "2499999999"\n'))
    assert refused(role).detail == "Notional limit: the signing key's policy forbids it"
    assert "signs at most 2499999999" in role.desk.policy_refusal
    with pytest.raises(ConfigError, match=f"amounts_max: lacks {CHAIN_ID}:{USDC}"):
        a_chain(settings_of(amounts))


def test_processes_divide_the_funds() -> None:
    role = a_chain(share=4)
    assert [holding.funds for holding in role.holdings] == [25 * ONE, 62_500 * 10**6, 62_500 * ONE]


@given(
    steps=st.lists(
        st.tuples(st.integers(1, 3 * ONE), st.sampled_from(["fill", "half", "wait", "keep"])), max_size=40
    )
)
def test_reservations_always_are_the_sum_of_live_promises(steps: list[tuple[int, str]]) -> None:
    role = a_chain(price_life_ms=10**12)
    now_ms, live = NOW_MS, {}
    for amount, then in steps:
        try:
            order = quoted(role, now_ms, takerAmount=str(amount))
        except FirmRefused:
            continue
        promise = role.desk.ledger.promises()[-1]
        order_hash = promise.order_hash
        live[order_hash] = [int(order.maker_amount), order.expiry]
        if then == "fill":
            role.desk.ledger.settle(promise, 1)
            live[order_hash][0] = 0
        elif then == "half":
            live[order_hash][0] //= 2
            role.desk.ledger.settle(promise, live[order_hash][0] + 1)
        elif then == "wait":
            now_ms += 100_000
            role.desk.ledger.release_expired(now_ms // 1000)
            live = {key: row for key, row in live.items() if row[1] + 15 >= now_ms // 1000}
        assert reserved(role)[USDC] == sum(row[0] for row in live.values())
        assert len(role.desk.ledger) == len(live)
