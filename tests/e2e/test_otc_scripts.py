"""OTC orders of scripts with ethers and viem as maker, taker and stranger; venue and chain are processes."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import Struct

from cambist.crypto.addresses import ZERO_ADDRESS, to_checksum
from support.oracles import Stories
from support.venue.venue_processes import Running, venue_processes
from support.venue.venue_role import CHAIN_ID, KEYS, STRANGER

pytestmark = pytest.mark.oracle

ONE, USDC = 10**18, 10**6
NOBODY = to_checksum(ZERO_ADDRESS)
PARTIES = {"ethers": (KEYS[6], KEYS[7]), "viem": (KEYS[8], KEYS[9])}
"""Maker and taker."""
PRIVATE = [
    # maker's asset, taker's asset, amounts, bytes of the signature, how the path of the post ends
    ("WETH", "USDC", 2 * ONE, 5_000 * USDC, 65, "slash"),
    ("USDC", "WETH", 2_500 * USDC + 1, ONE + 3, 64, "bare"),
]
OPEN = [
    ("USDC", "WETH", 1_000 * USDC, ONE // 2, 64, "slash"),
    ("DAI", "USDC", 300 * ONE + 7, 299 * USDC, 65, "bare"),
]
SCOPES = ("inPath", "inPathSlash", "inQuery", "inQuerySlash")
CASES = [(library, trade) for library in PARTIES for trade in (0, 1)]
NAMES = [f"{library}, {trade}" for library in PARTIES for trade in ("whole amounts", "odd amounts")]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with venue_processes(tmp_path_factory.mktemp("venue"), [("WETH", "USDC")]) as processes:
        yield processes


class Told(Struct, frozen=True):
    """Script's result for an order that gives `amount` for `price`."""

    told: dict[str, Any]
    maker: str
    taker: str
    gives: str
    amount: int
    price: int
    signed_bytes: int

    @property
    def part(self) -> int:
        """Taker's payment for its part of the private order."""
        return self.price // 4

    @property
    def given(self) -> int:
        """Maker's delivery for the part."""
        return self.part * self.amount // self.price

    @property
    def left(self) -> int:
        """Remaining maker amount after the part."""
        return self.amount - self.given

    def __getitem__(self, name: str) -> Any:
        return self.told[name]


Ended = dict[tuple[str, str, int], Told]


@pytest.fixture(scope="module")
def ended() -> Ended:
    """Stories that are over: a story runs once, in whatever order the tests ask for it."""
    return {}


def script(stories: Stories, library: str, running: Running, story: str, trade: tuple[Any, ...]) -> Told:
    """The story, once it is over."""
    gives, wants, amount, price, signed_bytes, _ = trade
    tokens = [running.devnet.text(symbol) for symbol in (gives, wants)]
    keys = [f"0x{key.secret32().hex()}" for key in (*PARTIES[library], STRANGER)]
    arguments = (running.rpc, *keys, running.url, story, *tokens, *map(str, trade[2:]))
    told = stories.told(f"{library}_otc", *arguments)
    maker, taker = (to_checksum(key.address) for key in PARTIES[library])
    return Told(told, maker, taker, tokens[0], amount, price, signed_bytes)


@pytest.fixture(params=CASES, ids=NAMES)
def private(request: pytest.FixtureRequest, stories: Stories, running: Running, ended: Ended) -> Told:
    library, trade = request.param
    if ("privately", library, trade) not in ended:
        ended["privately", library, trade] = script(stories, library, running, "privately", PRIVATE[trade])
    return ended["privately", library, trade]


@pytest.fixture(params=CASES, ids=NAMES)
def public(request: pytest.FixtureRequest, stories: Stories, running: Running, ended: Ended) -> Told:
    library, trade = request.param
    if ("openly", library, trade) not in ended:
        ended["openly", library, trade] = script(stories, library, running, "openly", OPEN[trade])
    return ended["openly", library, trade]


def members(message: dict[str, Any]) -> tuple[Any, ...]:
    """Order's members in an event."""
    names = ("status", "version", "fillableBalance", "swappableBalance")
    return (*(message[name] for name in names), message.get("transactionHash"))


def balances(stored: dict[str, Any]) -> tuple[int, ...]:
    """Unfilled amount, maker's balance, reserved amount, and fillable amount."""
    names = ("fillableBalance", "makerBalance", "reservedBalance", "swappableBalance")
    return tuple(int(stored[name]) for name in names)


def test_delta_is_not_offered_where_nothing_settles_it(running: Running, private: Told) -> None:
    delta = private["delta"]
    lack = f"Delta is not served on chain {CHAIN_ID}: no relayer settles its orders"
    assert {name: delta["chain"][name] for name in ("delta", "market", "rfq")} == {
        "delta": False, "market": True, "rfq": True,
    }  # fmt: skip
    assert delta["contracts"]["served"] == {"delta": False, "market": True, "rfq": True}
    assert delta["contracts"]["delta"] == to_checksum(running.devnet.at("delta")), (
        "it stands there all the same"
    )
    assert delta["isMarket"]
    assert delta["fallbackReason"] == {"errorType": "NoRoute", "details": f"No route: {lack}"}
    assert (delta["only"]["status"], delta["only"]["details"]) == (400, f"No route: {lack}")
    assert (delta["submit"]["status"], delta["submit"]["errorType"]) == (422, "UnsupportedChain")
    assert lack in delta["submit"]["details"]


# --- A private order ----------------------------------------------------------------------------------


def test_what_was_signed_is_kept_and_found(running: Running, private: Told) -> None:
    stored, amount = private["stored"], private.amount
    assert private["rfq"] == to_checksum(running.devnet.at("rfq"))
    assert private["signedBytes"] == private.signed_bytes
    assert private["hash"] == stored["orderHash"]
    assert private["answer"] == private["again"] == {**stored, "order": stored}
    assert {name: stored[name] for name in private["body"]} == private["body"], "what was posted is echoed"
    assert (stored["chainId"], stored["type"], stored["state"]) == (CHAIN_ID, "P2P", "PENDING")
    assert (stored["maker"], stored["taker"]) == (private.maker, private.taker)
    assert stored["takerFromMeta"] == private.taker
    assert stored["transactionHash"] is None
    assert balances(stored) == (amount, amount, amount, amount)
    listed = private["listed"]
    for role in ("maker", "taker"):
        assert (listed[role]["orders"], listed[role]["limit"], listed[role]["offset"]) == ([stored], 1, 0)
    assert stored in listed["byExpiry"]["orders"]
    assert stored not in listed["open"]["orders"]


def test_an_older_order_above_the_makers_funds_reserves_nothing(private: Told) -> None:
    giant, stored = private["tooLarge"], private["stored"]
    assert (giant["state"], giant["maker"], giant["makerAsset"]) == (
        "SUSPENDED",
        private.maker,
        private.gives,
    )
    assert (giant["reservedBalance"], giant["swappableBalance"]) == ("0", "0")
    assert giant["createdAt"] <= stored["createdAt"]
    assert stored["reservedBalance"] == stored["swappableBalance"] == str(private.amount)
    assert stored in private["listed"]["taker"]["orders"], "hideSmallBalances=true"


def test_a_stranger_is_refused_by_the_contract(private: Told) -> None:
    assert private["stranger"] == {"word": "Access denied", "isFailed": True}
    assert private["untouched"] == private["stored"]


def test_the_taker_fills_a_part_on_chain(private: Told) -> None:
    filled, left, part, given = private["filled"], private.left, private.part, private.given
    assert (filled["state"], filled["transactionHash"]) == ("PENDING", private["fillHash"])
    assert balances(filled) == (left, left, left, left)
    assert (private["part"], private["left"]) == (str(part), str(left))
    assert private["moved"] == [str(moved) for moved in (-given, part, given, -part)]
    assert private["whole"] == "Order already filled or expired"


def test_the_maker_cancels_the_rest_on_chain(private: Told) -> None:
    stored, filled, cancelled = private["stored"], private["filled"], private["cancelled"]
    assert (cancelled["state"], cancelled["transactionHash"]) == ("CANCELLED", private["cancelHash"])
    assert balances(cancelled) == (private.left, 0, 0, 0)
    assert private["closed"] == {"word": "Order already filled or expired", "kept": "1"}
    assert private["hash"] not in private["hidden"]
    for name in (*private["body"], "orderHash", "createdAt"):
        assert stored[name] == filled[name] == cancelled[name]


def test_what_is_promised_is_told_before_and_after(private: Told) -> None:
    """Twice the order's amount is approved; no other live order gives that token."""
    amount, given = private.amount, private.given
    expected = {"before": 2 * amount, "posted": amount, "filled": amount, "cancelled": 2 * amount - given}
    token = private.gives.lower()
    assert private["fillables"] == {
        when: {**{how: {token: str(fillable)} for how in SCOPES}, "ofAll": str(fillable)}
        for when, fillable in expected.items()
    }


def test_what_the_maker_did_not_sign_is_refused_and_not_kept(private: Told) -> None:
    assert len(private["refused"]) == 4
    for refusal in private["refused"]:
        assert refusal.keys() == {"status", "errorType", "details", "requestId"}
        assert (refusal["status"], refusal["errorType"]) == (400, "InvalidSignature")
    assert to_checksum(STRANGER.address) in private["refused"][-1]["details"]
    assert (private["unknown"]["status"], private["unknown"]["errorType"]) == (404, "OrderNotFound")


def test_each_change_is_pushed_to_both_sides(private: Told) -> None:
    amount, left, pushed = str(private.amount), str(private.left), private["pushed"]
    assert [members(message) for message in pushed["maker"]] == [
        ("PENDING", 1, amount, amount, None),
        ("PENDING", 2, left, left, private["fillHash"]),
        ("CANCELLED", 3, left, "0", private["cancelHash"]),
    ]
    for message in pushed["maker"]:
        assert (message["surface"], message["orderHash"]) == ("otc", private["hash"])
        assert (message["owner"], message["taker"]) == (private.maker, private.taker)
    assert pushed["taker"] == pushed["maker"]
    assert pushed["again"] == pushed["maker"][1:], "what came after the first token"


# --- An open order ------------------------------------------------------------------------------------


def test_an_order_with_a_permit_can_be_filled_and_one_without_waits(public: Told) -> None:
    stored, bare, amount = public["answer"]["order"], public["bare"], public.amount
    assert public["answer"] == {**stored, "order": stored}
    assert public["signedBytes"] == public.signed_bytes
    assert (stored["orderHash"], stored["expiry"]) == (public["hash"], 0)
    assert (stored["type"], stored["taker"], stored["takerFromMeta"]) == ("LIMIT", NOBODY, public.taker)
    assert (stored["state"], stored["permitMakerAsset"]) == ("PENDING", public["permit"])
    assert balances(stored) == (amount, amount, amount, amount)
    assert public["listed"]["orders"] == [stored], "the taker finds it by its nonceAndMeta"
    assert (bare["state"], bare["permitMakerAsset"], bare["takerFromMeta"]) == ("SUSPENDED", None, NOBODY)
    assert balances(bare) == (amount, 0, 0, 0)
    assert public["without"] == "TRANSFER_FROM_FAILED"


def test_whoever_comes_fills_all_of_it_with_the_permit(public: Told) -> None:
    filled, amount, price = public["filled"], public.amount, public.price
    assert (filled["state"], filled["transactionHash"]) == ("FULFILLED", public["fillHash"])
    assert balances(filled) == (0, 0, 0, 0)
    assert public["moved"] == [str(moved) for moved in (-amount, price, amount, -price)]
    assert [members(message) for message in public["pushed"]] == [
        ("PENDING", 1, str(amount), str(amount), None),
        ("FULFILLED", 2, "0", "0", public["fillHash"]),
    ]


def test_the_other_one_is_cancelled_in_a_batch(public: Told) -> None:
    ended = public["bareEnd"]
    assert (ended["state"], ended["transactionHash"]) == ("CANCELLED", public["cancelHash"])
