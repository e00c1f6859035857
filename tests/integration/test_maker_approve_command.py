"""`cambist maker approve`: balances and allowances are shown, what is missing is sent, and taken back."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cambist.codecs.contracts.calldata import allowance, approve
from cambist.crypto.addresses import parse_address
from support.chain.devnet import Devnet, telling_process
from support.patience import PATIENCE_S

pytestmark = pytest.mark.process
MOST = 2**256 - 1
SETTINGS = """
state_dir = "state"
[server]
port = 1
[chains.31337]
name = "devnet"
rfq_contract = "{rfq}"
[keys.maker]
source = "env:MAKER_KEY"
policy.contracts = ["31337:{rfq}"]
[auth.domains.venue]
keys = [{{ access_key = "k1", secret = "env:MAKER_KEY" }}]
[maker.chains.31337]
key = "maker"
{more}
price_source = "static"
price_options.path = "prices.json"
tokens.WETH = {{ address = "{weth}", decimals = 18 }}
tokens.USDT = {{ address = "{usdt}", decimals = 6 }}
pairs."WETH/USDT" = {{ base = "WETH", quote = "USDT", liquidity_usd = 1 }}
"""


@pytest.fixture(scope="module")
def devnet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devnet]:
    with telling_process("devnet", "--port", "0", folder=tmp_path_factory.mktemp("devnet")) as process:
        yield process


class Desk:
    """An account of a devnet whose owner runs the command."""

    def __init__(self, devnet: Devnet, folder: Path, number: int, more: str = "") -> None:
        chain = devnet.told["chains"][0]
        at = chain["contracts"]
        self.node: str = chain["http"]
        self.account, self.key = (devnet.told["accounts"][number][each] for each in ("address", "key"))
        self.rfq: str = at["augustusRFQ"]
        self.token = {name: at["tokens"][name]["address"] for name in ("WETH", "USDT")}
        self.path = folder / "maker.toml"
        text = SETTINGS.format(
            rfq=self.rfq,
            more=more or f'node_url = "{self.node}"',
            weth=self.token["WETH"],
            usdt=self.token["USDT"],
        )
        self.path.write_text(text, encoding="utf-8")

    def approve(self, *options: str, answer: str = "") -> tuple[int, str]:
        """Exit status and output of the command."""
        done = subprocess.run(
            [sys.executable, "-m", "cambist", "maker", "approve", "--config", self.path, *options],
            input=answer, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
            env=os.environ | {"MAKER_KEY": self.key},
        )  # fmt: skip
        assert self.key not in done.stdout + done.stderr
        return done.returncode, done.stdout + done.stderr

    def ask(self, method: str, *params: Any) -> Any:
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return httpx.post(self.node, json=call, timeout=PATIENCE_S).json()["result"]

    def allowed(self, name: str) -> int:
        owner, spender = parse_address(self.account), parse_address(self.rfq)
        data = "0x" + allowance(owner, spender).hex()
        return int(self.ask("eth_call", {"to": self.token[name], "data": data}, "latest"), 16)

    def has(self, name: str) -> int:
        data = "0x70a08231" + self.account[2:].lower().zfill(64)
        return int(self.ask("eth_call", {"to": self.token[name], "data": data}, "latest"), 16)


def test_what_is_missing_is_sent_once_and_taken_back(devnet: Devnet, tmp_path: Path) -> None:
    desk = Desk(devnet, tmp_path, 5)
    before = desk.has("WETH")
    code, said = desk.approve("--chain", "31337", "--wrap", "WETH=1.5", "--yes")
    assert code == 0, said
    assert "to do: wrap 1.5 into WETH" in said
    assert "approve any amount of USDT: 0x" in said
    assert desk.has("WETH") - before == 3 * 10**18 // 2
    assert [desk.allowed(name) for name in ("WETH", "USDT")] == [MOST, MOST]
    assert desk.approve("--yes")[1].endswith("approved\nnothing to do\n")
    code, said = desk.approve("--revoke", "--yes")
    assert (code, [desk.allowed(name) for name in ("WETH", "USDT")]) == (0, [0, 0]), said


def test_an_allowance_that_is_too_small_is_replaced(devnet: Devnet, tmp_path: Path) -> None:
    desk = Desk(devnet, tmp_path, 6)
    data = "0x" + approve(parse_address(desk.rfq), 7).hex()
    desk.ask("eth_sendTransaction", {"from": desk.account, "to": desk.token["USDT"], "data": data})
    assert desk.allowed("USDT") == 7
    code, said = desk.approve("--yes")
    assert (code, desk.allowed("USDT")) == (0, MOST), said
    assert "revoke the allowance of USDT: 0x" in said  # a token that changes allowances from zero alone


def test_an_allowance_of_96_bits_is_enough(devnet: Devnet, tmp_path: Path) -> None:
    desk = Desk(devnet, tmp_path, 9)
    data = "0x" + approve(parse_address(desk.rfq), 2**96 - 1).hex()
    for token in desk.token.values():
        desk.ask("eth_sendTransaction", {"from": desk.account, "to": token, "data": data})
    assert desk.approve("--yes")[1].endswith("approved\nnothing to do\n")


def test_a_no_sends_nothing(devnet: Devnet, tmp_path: Path) -> None:
    desk = Desk(devnet, tmp_path, 7)
    code, said = desk.approve(answer="n\n")
    assert (code, "Send these transactions?" in said) == (1, True)
    assert desk.allowed("WETH") == 0


@pytest.mark.parametrize(
    ("more", "options", "code", "says"),
    [
        ("", ("--chain", "1"), 2, "--chain: expected one of 31337, got 1"),
        ("", ("--wrap", "WETH=1"), 2, "--wrap: only with --chain, and not with --revoke"),
        ("", ("--chain", "31337", "--wrap", "ETH=1"), 2, "--wrap: expected one of WETH, USDT, got ETH"),
        ("", ("--chain", "31337", "--wrap", "WETH=1e3"), 1, "--wrap: expected "),
        ("", ("--chain", "31337", "--wrap", "WETH=999999999"), 1, "has too little to wrap"),
        ("liquid = 1", (), 1, "maker.chains.31337"),
        ("prefix = ''", (), 1, "maker.chains.31337.node_url: is needed to read and send"),
        ('maker = "0x' + "11" * 20 + '"', (), 1, "maker.chains.31337.maker: is a contract"),
    ],
)
def test_what_cannot_be_done_is_named(
    devnet: Devnet, tmp_path: Path, more: str, options: tuple[str, ...], code: int, says: str
) -> None:
    found, said = Desk(devnet, tmp_path, 8, more).approve(*options, "--yes")
    assert (found, says in said) == (code, True), said
