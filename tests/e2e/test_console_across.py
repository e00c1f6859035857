"""Orders to another chain at the console of `cambist up`, lies about them, and orders of rarer kinds."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word, selector, uint_word
from cambist.crypto.addresses import parse_address, to_checksum
from cambist.crypto.hexadecimal import to_hex
from support.browser import Browser
from support.chain.devnet import Devnet, cambist, telling_process
from support.patience import PATIENCE_S
from support.venue.venue_processes import asked

pytestmark = pytest.mark.seldom

NEAR, FAR = 31_337, 31_338
THERE = f"second devnet · {FAR}"
OTHER = "0x" + "66" * 20


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devnet]:
    folder = tmp_path_factory.mktemp("up")
    with telling_process("up", "--port", "0", "--devnet-port", "0", folder=folder) as process:
        yield process


# Accounts 1 to 4 have orders; account 0 has none, since none of its orders is agreed to.
async def told(browser: Browser, up: Devnet, *story: str) -> Any:
    """Report of a story; the page called no other host but the venue and its chain's node."""
    visit = await browser.look("console_across", up.told["venue"], *story)
    assert visit.complaints == ()
    assert {url.rstrip("/") for url in visit.foreign} <= {up.told["chains"][str(NEAR)]}
    return visit.told


def orders_of(up: Devnet, owner: str) -> list[dict[str, Any]]:
    """The venue's records of an account's orders."""
    owner = to_checksum(parse_address(owner, "owner"))
    found: list[dict[str, Any]] = asked(f"{up.told['venue']}/v2/delta/orders?userAddress={owner}")["data"]
    return found


async def test_an_order_is_followed_to_its_delivery_on_the_other_chain(browser: Browser, up: Devnet) -> None:
    report = await told(browser, up, "order", "1", "Gasless", "USDC", "1", "SELL", THERE)
    assert {line.split()[0] for line in report["bridges"]} == {"across", "cctp"}
    terms = report["agreement"]["terms"]
    assert terms["You pay"] == "exactly 1 WETH"
    assert terms["You receive"].startswith("at least 2,")
    assert terms["You receive"].endswith(f" USDC, on second devnet · {FAR}")
    assert report["bridges"][0].startswith(terms["Bridge"].split()[0])
    assert terms["Bridge’s fee"].endswith(" USDC, in these amounts already")
    assert terms["If it fails"].startswith(f"USDC is paid back to you on devnet · {NEAR}")
    assert report["said"][0].startswith("✓ 0x")
    assert report["said"][-1] == "✓ accepted"
    assert any("bridging" in entry for entry in report["timeline"])
    assert f"delivered on second devnet · {FAR}" in report["timeline"][-1]
    assert report["title"].endswith(f" USDC on second devnet · {FAR}")
    assert f"Delivery on second devnet · {FAR}" in report["head"]
    (record,) = orders_of(up, report["owner"])
    assert (record["status"], record["output"]["chainId"]) == ("COMPLETED", FAR)
    assert report["faults"] == []
    assert report["overflowing"] == []


async def test_another_bridge_than_the_recommended_one_can_be_chosen(browser: Browser, up: Devnet) -> None:
    report = await told(browser, up, "otherBridge", "0", THERE)
    first, second = (text.split()[0] for text in report["bridges"])
    assert report["before"].startswith(first)
    assert report["after"].startswith(second)
    assert report["checked"] == [False, True]


async def test_a_purchase_arrives_to_the_unit(browser: Browser, up: Devnet) -> None:
    report = await told(browser, up, "order", "2", "Gasless", "USDC", "500", "BUY", THERE)
    assert report["agreement"]["terms"]["You receive"] == f"exactly 500 USDC, on second devnet · {FAR}"
    assert report["agreement"]["terms"]["You pay"].startswith("at most 0.")


async def test_wrapped_native_tokens_go_without_a_swap_and_arrive_unwrapped(
    browser: Browser, up: Devnet
) -> None:
    report = await told(browser, up, "order", "2", "Gasless", "ETH", "1", "SELL", THERE)
    terms = report["agreement"]["terms"]
    assert terms["You pay"] == "exactly 1 WETH"
    assert re.fullmatch(rf"at least 0\.99\d* ETH, on second devnet · {FAR}", terms["You receive"])
    assert terms["If it fails"].startswith(f"WETH is paid back to you on devnet · {NEAR}")
    assert report["title"].endswith(f" ETH on second devnet · {FAR}")
    assert "delivered on second devnet" in report["timeline"][-1]
    assert report["faults"] == []


async def test_slices_of_a_twap_cross_one_by_one(browser: Browser, up: Devnet) -> None:
    report = await told(browser, up, "order", "3", "TWAP", "USDC", "2", "SELL", THERE)
    assert report["agreement"]["terms"]["You pay"] == "exactly 2 WETH in 2 slices"
    assert f"for each slice, on second devnet · {FAR}" in report["agreement"]["terms"]["You receive"]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"destination.output.token": {"chainId": 1, "address": OTHER}}, "destination.output should be"),
        ({"destination.output.token": {"chainId": FAR, "address": OTHER}}, "destination.output should be"),
        ({"bridge.contractParams.outputToken": OTHER}, "outputToken of the bridge should be"),
        ({"bridge.contractParams.protocolData": "0x01"}, "protocolData of the bridge should be"),
        ({"bridge.contractParams.scalingFactor": 12}, "scalingFactor of the bridge should be 0"),
        (
            {"destination.output.amount": "9" * 12, "destination.input.amount": "9" * 12},
            "route.destination.output.amount should be at most",
        ),
        ({"bridge": None}, "a bridge to the other chain"),
    ],
)
async def test_a_quote_that_was_not_wished_is_never_agreed_to(
    browser: Browser, up: Devnet, changes: dict[str, Any], named: str
) -> None:
    report = await told(browser, up, "quoteLies", "0", THERE, json.dumps(changes))
    assert named in report["fault"]
    assert report["dialogs"] == 0
    assert orders_of(up, report["owner"]) == []


@pytest.mark.parametrize(
    ("at", "value", "named"),
    [
        ("bridge.destinationChainId", 1, f"bridge.destinationChainId should be {FAR}"),
        ("bridge.outputToken", OTHER, "bridge.outputToken should be 0x"),
        ("bridge.protocolData", "0x", "bridge.protocolData should be 0x"),
        ("bridge.protocolSelector", "0x00000000", "bridge.protocolSelector should be 0x"),
        ("bridge.more", 1, "members of bridge should be"),
        ("destToken", OTHER, "destToken should be 0x"),
        ("destAmount", "1", "destAmount should be at least "),
        ("beneficiary", OTHER, "beneficiary should be 0x"),
        ("metadata", "0x01", "metadata should be 0x"),
    ],
)
async def test_an_order_that_was_not_agreed_to_is_not_signed(
    browser: Browser, up: Devnet, at: str, value: Any, named: str
) -> None:
    report = await told(browser, up, "buildLies", "0", THERE, at, json.dumps(value))
    assert named in report["fault"]
    assert orders_of(up, report["owner"]) == []


# --- Orders as their records say ----------------------------------------------------------------------


def placed(up: Devnet, folder: Path, account: int, *options: str) -> dict[str, Any]:
    """Record of an order that the command line placed."""
    owner = up.told["accounts"][account]
    where = ["--venue", up.told["venue"], "--chain", str(NEAR), "--rpc", up.told["chains"][str(NEAR)]]
    done = subprocess.run(
        cambist("order", *options, *where, "--key", "env:TRADER_KEY", "--yes", "--json", folder=folder),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env=os.environ | {"TRADER_KEY": owner["key"]},
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return orders_of(up, owner["address"])[0]


def deposit_into(up: Devnet, vault: str, account: int, amount: int) -> None:
    """The account, whose key the node has, puts USDC into a vault."""
    owner, usdc = up.told["accounts"][account]["address"], up.told["tokens"]["USDC"]
    put = (
        selector("deposit(uint256,address)") + uint_word(amount) + address_word(parse_address(owner, "owner"))
    )
    acts = [
        (usdc, calldata.approve(parse_address(vault, "vault"), amount)),
        (vault, put),
    ]
    for to, data in acts:
        call = {"jsonrpc": "2.0", "id": 1, "method": "eth_sendTransaction"}
        call["params"] = [{"from": owner, "to": to, "data": to_hex(data)}]
        answer = httpx.post(up.told["chains"][str(NEAR)], json=call, timeout=PATIENCE_S).json()
        assert "error" not in answer, answer


@pytest.mark.parametrize(
    ("status", "code", "text", "shown"),
    [
        (
            "BRIDGING",
            "transferLate",
            "2490000000 are late to chain 31338 by across, sent at T",
            "2,490 USDC are late to chain 31338 by across, sent at T.",
        ),
        (
            "BRIDGING",
            "swapDue",
            "1500000 came to chain 31338 at T, and are to be swapped",
            "1.5 USDC came to chain 31338 at T, and are to be swapped.",
        ),
        (
            "REFUNDING",
            "refundDue",
            "a refund of 2500000000 is due: across did not deliver by 2026",
            "A refund of 2,500 USDC is due: across did not deliver by 2026.",
        ),
    ],
)
async def test_waits_of_a_bridge_are_told_in_whole_tokens(
    browser: Browser, up: Devnet, tmp_path: Path, status: str, code: str, text: str, shown: str
) -> None:
    far = "--to-chain", str(FAR), "--to-rpc", up.told["chains"][str(FAR)], "--via", "USDC"
    record = placed(up, tmp_path, 4, "swap", "WETH", "USDC", "0.5", *far)
    refund = {"tx": "0x" + "77" * 32, "chainId": NEAR, "token": record["order"]["destToken"]}
    changes: dict[str, Any] = {"status": status, "order": {"metadata": "0x01"}}
    changes["refunds"] = [refund | {"amount": "2500000000"}]
    (raw,) = re.findall(r"\b\d{7,}\b", text)
    bridge = record["order"]["bridge"]
    here = {"amount": raw, "token": record["order"]["destToken"]}
    there = {"amount": raw, "token": bridge["outputToken"], "chainId": bridge["destinationChainId"]}
    amounts = [here if code == "refundDue" else there]
    reasons = json.dumps([{"code": code, "text": text, "amounts": amounts}])
    report = await told(browser, up, "record", "order-bridge", record["id"], json.dumps(changes), reasons)
    assert report["badge"] == status.lower()
    assert report["reasons"] == [shown]
    assert report["head"]["Bridge"] == f"Across, to second devnet · {FAR}"
    assert report["head"]["There"] == "USDC is swapped for USDC"
    assert report["head"]["Paid back"].startswith(f"2,500 USDC on devnet · {NEAR} by 0x77")
    assert report["faults"] == []
    assert report["overflowing"] == []


async def test_an_order_from_a_vault_is_shown_with_its_shares(
    browser: Browser, up: Devnet, tmp_path: Path
) -> None:
    strategies = asked(f"{up.told['venue']}/v2/delta/prices/strategies/{NEAR}")
    vault = next(iter(strategies.values()))["strategies"][0]["vault"]
    deposit_into(up, vault, 3, 200 * 10**6)
    record = placed(up, tmp_path, 3, "swap", "USDC", "WETH", "100", "--strategy", vault)
    report = await told(browser, up, "record", "order-vault", record["id"], "{}", "")
    assert report["head"]["Kind"] == "vault order"
    assert report["head"]["Sold from the vault"].startswith(f"USDC Vault {vault[:6]}…")
    assert report["head"]["Shares, at most"].endswith(" vUSDC")
    assert report["head"]["Received"].endswith(" WETH")
    assert report["faults"] == []
    assert report["overflowing"] == []


async def test_an_order_of_a_handler_is_shown_with_its_bounds(
    browser: Browser, up: Devnet, tmp_path: Path
) -> None:
    record = placed(up, tmp_path, 2, "swap", "WETH", "USDC", "1")
    markup = "<b>bold</b>"
    changes = {"onChainOrderType": "ExternalOrder", "order": {"handler": OTHER, "data": "0x" + "ab" * 96}}
    reasons = json.dumps([{"code": "handlerRests", "text": f"the order's handler rests: {markup}"}])
    report = await told(browser, up, "record", "order-handler", record["id"], json.dumps(changes), reasons)
    assert report["head"]["Kind"] == "handler order"
    assert re.fullmatch(rf"{OTHER[:6]}….* trades it, and no agent bids", report["head"]["Handler"])
    assert report["head"]["Data for the handler"] == "96 bytes"
    assert report["head"]["At least"].endswith(" USDC")
    assert report["reasons"] == [f"The order's handler rests: {markup}."]
    assert report["elements"] == 0
    assert report["faults"] == []
    assert report["overflowing"] == []
