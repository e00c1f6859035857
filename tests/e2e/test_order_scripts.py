"""Delta orders of scripts with ethers and viem, and of `cambist order`: venue, agents and node are processes
too.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from bench.peers.process import ROOT

from cambist.crypto.addresses import to_checksum
from support.oracles import Stories
from support.patience import STORY_S
from support.programs import ORACLES
from support.venue.venue_processes import AGENT, Running, asked, venue_processes
from support.venue.venue_role import CHAIN_ID, KEYS, USER

NATIVE = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"

ONE, USDC = 10**18, 10**6
OWNERS = {"ethers": KEYS[6], "viem": KEYS[7]}
SWAPS = [
    # side, source, destination, amount, bytes of the signature
    ("SELL", "WETH", "USDC", 2 * ONE, 64),
    ("BUY", "WETH", "USDC", 1_000 * USDC, 65),
    ("SELL", "ETH", "USDC", ONE, 64),
    ("BUY", "ETH", "USDC", 700 * USDC, 65),
    ("SELL", "USDC", "ETH", 500 * USDC, 65),
    ("SELL", "USDC", "DAI", 100 * USDC, 64),
]
LIMITS = [("WETH", "USDC", ONE, 64), ("USDC", "WETH", 300 * USDC, 65)]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    pairs = [(src, dest) for _, src, dest, *_ in SWAPS]
    with venue_processes(tmp_path_factory.mktemp("venue"), pairs, has_agent=True) as processes:
        yield processes


# --- ethers and viem ----------------------------------------------------------------------------------


def script(stories: Stories, library: str, running: Running, story: str, *trade: Any) -> dict[str, Any]:
    """JSON result of a script's story."""
    src, dest, amount, side, width = trade
    tokens = [running.devnet.text(symbol) for symbol in (src, dest)]
    key = f"0x{OWNERS[library].secret32().hex()}"
    arguments = (running.rpc, key, running.url, story, *tokens, str(amount), side, str(width))
    return stories.told(f"{library}_order", *arguments)


def are_not_the_owners(refused: list[str], library: str) -> bool:
    """Whether each refusal says that somebody else has signed."""
    owner = to_checksum(OWNERS[library].address)
    says = rf"400 InvalidSignature: Invalid signature: 0x[0-9a-fA-F]{{40}} signed this, not the owner {owner}"
    return all(re.match(says, refusal) for refusal in refused)


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("side", "src", "dest", "amount", "width"),
    SWAPS,
    ids=[f"{side} {src} {dest}" for side, src, dest, *_ in SWAPS],
)
@pytest.mark.parametrize("library", OWNERS)
def test_a_script_signs_an_order_and_gets_what_the_record_says(
    stories: Stories, running: Running, library: str, side: str, src: str, dest: str, amount: int, width: int
) -> None:
    told = script(stories, library, running, "swap", src, dest, amount, side, width)
    record, order = told["record"], told["order"]
    assert told["signedBytes"] == width
    assert told["spender"] == running.devnet.text("delta")
    assert told["hash"] == told["orderHash"] == record["orderHash"]
    assert told["seen"][-1] == record["status"] == "COMPLETED"
    assert told["again"] == record["id"]
    assert told["partner"] == {"name": "a-wallet", "feePercent": 0.01}
    assert record["partner"] == "a-wallet"
    assert record["owner"] == record["beneficiary"] == to_checksum(OWNERS[library].address)
    assert (record["side"], record["type"]) == (side, "MARKET")
    assert record["order"] == order
    ends = [NATIVE if symbol == "ETH" else running.devnet.text(symbol) for symbol in (src, dest)]
    assert [order["srcToken"], order["destToken"]] == ends
    assert [record["input"]["token"], record["output"]["token"]] == ends
    assert [order["owner"], order["beneficiary"]] == [record["owner"]] * 2
    (settlement,) = record["transactions"]
    assert (settlement["spentAmount"], settlement["receivedAmount"]) == (told["spent"], told["received"])
    assert settlement["filledPercent"] == 100
    if side == "SELL":
        assert told["spent"] == record["input"]["amount"] == order["srcAmount"] == str(amount)
        assert told["received"] == record["output"]["executedAmount"]
        assert int(told["received"]) >= int(order["destAmount"]) == int(record["output"]["minAmount"])
    else:
        assert told["received"] == record["output"]["amount"] == order["destAmount"] == str(amount)
        assert told["spent"] == record["input"]["executedAmount"]
        assert int(told["spent"]) <= int(order["srcAmount"]) == int(record["input"]["maxAmount"])
    left = "0" if src == "ETH" else str(int(told["approved"]) - int(told["spent"]))
    assert (order["srcAmount"], told["allowanceLeft"]) == (told["approved"], left)
    assert len(told["refused"]) == 3
    assert are_not_the_owners(told["refused"], library), told["refused"]


@pytest.mark.oracle
@pytest.mark.parametrize(("src", "dest", "amount", "width"), LIMITS, ids=["WETH USDC", "USDC WETH"])
@pytest.mark.parametrize("library", OWNERS)
def test_a_script_finds_its_resting_order_and_cancels_it(
    stories: Stories, running: Running, library: str, src: str, dest: str, amount: int, width: int
) -> None:
    told = script(stories, library, running, "rest", src, dest, amount, "SELL", width)
    assert (told["resting"]["status"], told["resting"]["type"]) == ("ACTIVE", "LIMIT")
    limit = str(2 * int(told["quoted"]["dest"]))
    assert told["order"]["destAmount"] == told["order"]["expectedAmount"] == limit
    assert told["found"] == {"listed": [told["id"]], "byIds": [told["id"]], "byHash": [told["id"]]}
    assert told["empty"] == {
        "routes": {"routes": []}, "protocols": {"bridgeProtocols": []}, "strategies": {},
    }  # fmt: skip
    assert len(told["refused"]) == 1
    assert are_not_the_owners(told["refused"], library), told["refused"]
    for refusal in told["ofAll"]:
        assert refusal.startswith("400 InvalidInput: Invalid input: userAddress: expected an owner")
    assert told["hash"] == told["cancelHash"]
    assert told["cancelled"] == {"success": True, "cancelled": [told["id"]]}
    assert (told["record"]["status"], told["record"]["transactions"]) == ("CANCELLED", [])
    assert (told["spent"], told["received"]) == ("0", "0")
    token = running.devnet.text(src).lower()
    most = min(int(told["approved"]), int(told["has"]))
    for when, committed in (("before", 0), ("resting", amount), ("cancelled", 0)):
        assert told["balancesTold"][when] == {
            "committed": {token: str(committed)},
            "available": {token: str(most - committed)},
        }, when


# --- cambist order ------------------------------------------------------------------------------------


def ordered(running: Running, *arguments: str, is_signed: bool = True) -> dict[str, Any]:
    """The JSON that `cambist order` ends with."""
    places = ["--venue", running.url, "--rpc", running.rpc, "--json"]
    if is_signed:
        places += ["--chain", str(CHAIN_ID), "--key", "env:KEY"]
    done = subprocess.run(
        [sys.executable, "-m", "cambist", "order", *arguments, *places],
        capture_output=True,
        text=True,
        timeout=STORY_S,
        check=False,
        env=os.environ | {"KEY": USER.secret32().hex()},
    )
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    told: dict[str, Any] = json.loads(line)
    return told


@pytest.mark.parametrize(
    ("src", "dest", "amount", "side"),
    [("WETH", "USDC", "1.5", "SELL"), ("ETH", "USDC", "800", "BUY")],
    ids=["a sale", "a purchase"],
)
def test_the_command_swaps_and_the_chain_bears_it_out(
    running: Running, src: str, dest: str, amount: str, side: str
) -> None:
    told = ordered(running, "swap", src, dest, amount, "--side", side, "--yes")
    assert (told["outcome"], told["status"], told["isProven"]) == ("settled", "COMPLETED", True)
    if side == "SELL":
        assert told["spent"] == str(15 * ONE // 10)
        assert int(told["received"]) >= int(told["limit"])
    else:
        assert told["received"] == str(800 * USDC)
        assert int(told["spent"]) <= int(told["limit"])
    seen = ordered(running, "watch", told["orderHash"], is_signed=False)
    assert (seen["status"], seen["isProven"]) == ("COMPLETED", True)
    assert (seen["spent"], seen["received"]) == (told["spent"], told["received"])
    last, *_ = asked(f"{running.url}/v2/delta/orders/{told['id']}/explain")["lastRounds"]
    auction = asked(f"{running.url}/v2/delta/auctions/{last['auctionId']}")
    (round_of_it,) = [order for order in auction["orders"] if order["orderId"] == told["id"]]
    assert round_of_it["bids"][0]["agent"] == AGENT


def test_the_command_cancels_what_rests(running: Running) -> None:
    placed = ordered(running, "limit", "WETH", "USDC", "1", "--limit", "9000", "--yes")
    assert placed["outcome"] == "placed"
    told = ordered(running, "cancel", placed["id"])
    assert told["orders"] == [{"id": placed["id"], "status": "CANCELLED"}]


# --- Public clients of the protocol family --------------------------------------------------------------

CLIENTS = ROOT / "docs" / "guides" / "clients.md"
PACKAGES = {"6": "paraswap-sdk-6", "7": "@paraswap/sdk", "9": "@velora-dex/sdk"}
"""Major version of an SDK -> its name in package.json."""
CALLS = {
    "market": "`getRate`, `approveToken`, `buildTx`",
    "otc": "`buildLimitOrder`, `signLimitOrder`, `postP2POrder`, `fillOrderDirectly`, `cancelLimitOrder`",
    "router": "`buildLimitOrderTx`",
    "users": "`getTokens`, `getBalance`, `getBalances`, `getAllowance`",
    "delta": "`buildDeltaOrder`, `signDeltaOrder`, `postDeltaOrder`, same for TWAP, `cancelLimitDeltaOrders`",
}
"""Part of a story -> names that the page has for the calls of that part."""
NOT_SERVED = {
    "otc": ["getLimitOrders of type LIMIT", "postLimitOrder"],
    "delta": ["getDeltaOrderById", "getDeltaOrders", "getDeltaPrice"],
}


@pytest.fixture(scope="module", params=PACKAGES)
def sdk(request: pytest.FixtureRequest, stories: Stories, running: Running) -> tuple[str, dict[str, Any]]:
    """The major version of an SDK, and what its story told."""
    keys = [f"0x{KEYS[number].secret32().hex()}" for number in (8, 9)]
    tokens = [running.devnet.text(symbol) for symbol in ("WETH", "USDC")]
    told = stories.told("sdk_client", request.param, running.url, running.rpc, *keys, *tokens)
    return request.param, told


@pytest.mark.oracle
def test_a_public_sdk_swaps(running: Running, sdk: tuple[str, dict[str, Any]]) -> None:
    _, told = sdk
    market = told["market"]
    assert market["status"] == "success"
    assert market["to"] == market["spender"] == running.devnet.text("router")
    assert (market["spent"], market["received"]) == (str(ONE), market["quoted"])
    assert told["keyStatuses"] == ["unknown"]


@pytest.mark.oracle
def test_a_public_sdk_posts_fills_and_cancels(sdk: tuple[str, dict[str, Any]]) -> None:
    otc = sdk[1]["otc"]
    assert (otc["domain"], otc["types"]) == ("AUGUSTUS RFQ", ["LIMIT", "P2P"])
    assert otc["states"] == ["FULFILLED", "CANCELLED"]
    assert otc["isListed"]
    assert otc["gained"] == {"maker": str(2_600 * USDC), "taker": str(ONE)}


@pytest.mark.oracle
def test_a_public_sdk_fills_an_order_through_the_router(
    running: Running, sdk: tuple[str, dict[str, Any]]
) -> None:
    """The request has `orders` and no slippage; the order's amount comes, less the fee of one basis point."""
    router = sdk[1]["router"]
    assert (router["status"], router["state"]) == ("success", "FULFILLED")
    assert router["to"] == running.devnet.text("router")
    assert (router["spent"], router["received"]) == (str(2_600 * USDC), str(ONE - ONE // 10_000))


@pytest.mark.oracle
def test_a_public_sdk_reads_tokens_balances_and_allowances(
    running: Running, sdk: tuple[str, dict[str, Any]]
) -> None:
    users = sdk[1]["users"]
    listed = {
        token["symbol"]: (token["address"], token["decimals"], token["network"]) for token in users["tokens"]
    }
    assert listed.keys() == {"ETH", "WETH", "USDC", "DAI", "WBTC"} == set(users["balances"])
    usdc = running.devnet.text("USDC")
    assert (listed["USDC"], listed["ETH"]) == ((usdc, 6, CHAIN_ID), (NATIVE, 18, CHAIN_ID))
    assert users["byAddress"] == users["bySymbol"]
    assert users["byAddress"]["balance"] == users["onChain"]["usdc"]
    assert (users["native"]["symbol"], users["native"]["balance"]) == ("ETH", users["onChain"]["native"])
    approved = 7_000 * USDC - 2_600 * USDC
    assert users["allowance"] == {"tokenAddress": usdc, "allowance": str(approved)}
    assert users["none"]["allowance"] == "0"


@pytest.mark.oracle
def test_a_public_sdk_signs_a_delta_order_that_is_settled(sdk: tuple[str, dict[str, Any]]) -> None:
    major, told = sdk
    delta = told["delta"]
    if major != "9":
        assert "orderHash" not in (delta or {})
        return
    assert (delta["domain"]["name"], delta["domain"]["version"]) == ("Portikus", "2.0.0")
    assert delta["hash"] == delta["orderHash"]
    assert (delta["status"], delta["spent"]) == ("COMPLETED", str(ONE))
    assert int(delta["received"]) >= int(delta["quoted"])
    assert delta["kinds"] == ["Order", "TWAPOrder"]
    assert {*delta["rested"]} <= {"PENDING", "ACTIVE"}
    assert delta["cancelled"]["success"] is True
    assert {*delta["ended"]} <= {"CANCELLING", "CANCELLED"}


@pytest.mark.oracle
def test_the_page_of_clients_says_what_works(sdk: tuple[str, dict[str, Any]]) -> None:
    """Each row of docs/guides/clients.md: the version that is installed, and the calls that were made."""
    major, told = sdk
    installed = json.loads((ORACLES / "package.json").read_text())["dependencies"][PACKAGES[major]]
    version = installed.rpartition("@")[2]
    name = "@velora-dex/sdk" if major == "9" else "@paraswap/sdk"
    row = next(
        line for line in CLIENTS.read_text().splitlines() if line.startswith(f"| `{name}` {version} |")
    )
    _, _, market, otc, users, delta, _ = [cell.strip() for cell in row.split("|")]
    works = {"market": market, "otc": otc, "router": otc, "users": users, "delta": delta}
    for surface, calls in CALLS.items():
        found = told[surface] or {}
        is_used = any(member in found for member in ("status", "states", "allowance"))
        assert (calls in works[surface]) is is_used, (surface, works[surface])
        for call in NOT_SERVED.get(surface, []) if found else []:
            assert found["refusals"][call] == 404
            assert f"`{call.partition(' ')[0]}`" in CLIENTS.read_text()
