"""real-chain.md: every block runs on a bare node with the id of a real chain, and traders are paid."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
import trio

from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, selector, uint_word
from cambist.codecs.contracts.calldata import balance_of, transfer
from cambist.config.chains import SHIPPED_CHAINS
from cambist.crypto.addresses import parse_address, to_checksum
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.deploy.deploy import create
from cambist.engine.chain.port import EthCall
from cambist.engine.chain.transact import transact
from cambist.engine.cli.contracts.contracts import PERMIT2
from cambist.engine.dev.devnet.anvil import AnvilChain
from support.chain.anvil import KEYS, Anvil
from support.chain.put_code import put_code
from support.patience import STORY_S, until
from support.scripts_of_pages import at_free_ports

pytestmark = [pytest.mark.process, pytest.mark.seldom]
PAGE = (Path(__file__).parents[2] / "docs" / "start" / "real-chain.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```bash\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
CHAIN = 8_453
ONE, USDC_ONE = 10**18, 10**6
WETH = parse_address(SHIPPED_CHAINS[CHAIN].wrapped_native, "WETH")
RICH = SigningKey(bytes.fromhex(KEYS[0]))
T = TypeVar("T")
_WAITS = "touch made; until [ -e funded ]; do sleep 0.02; done"


async def furnished(chain: AnvilChain) -> bytes:
    """Put WETH and Permit2 where the chain has them, and a token of dollars; returns the token."""
    for name, address in (("DevWeth", WETH), ("DevPermit2", parse_address(PERMIT2, "Permit2"))):
        await put_code(chain, address, await chain.code(await create(chain, RICH, name)))
    words = encode(bytes_tail(b"USD Coin"), bytes_tail(b"USDC"), uint_word(6))
    return await create(chain, RICH, "DevToken", words)


async def funded(chain: AnvilChain, usdc: bytes, accounts: dict[str, bytes]) -> None:
    """Give every account of the page native tokens, and the maker and the trader tokens."""
    for account in accounts.values():
        await chain.set_balance(account, 10 * ONE)
    mint = selector("mint(address,uint256)")
    for name in ("maker", "trader"):
        data = mint + address_word(accounts[name]) + uint_word(10_000 * USDC_ONE)
        await transact(chain, RICH, usdc, data)
    await transact(chain, RICH, WETH, selector("deposit()"), value_wei=ONE)
    await transact(chain, RICH, WETH, transfer(accounts["trader"], ONE))


async def units(chain: AnvilChain, token: bytes, account: bytes) -> int:
    return int.from_bytes(await chain.call(EthCall(token, balance_of(account))))


def test_a_real_chain_from_keys_to_the_first_fill(tmp_path: Path) -> None:
    page = "\n".join(["set -euo pipefail", BLOCKS[0], _WAITS, *BLOCKS[1:]])
    with Anvil(CHAIN) as anvil, at_free_ports(page) as script:

        def on_chain(work: Callable[..., Awaitable[T]], *what: object) -> T:
            async def opening() -> T:
                async with AnvilChain.open(CHAIN, anvil.settings, known_errors()) as chain:
                    return await work(chain, *what)

            return trio.run(opening)

        usdc = on_chain(furnished)
        environ = os.environ | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "NODE": anvil.url,
            "CHAIN": str(CHAIN),
            "WETH": to_checksum(WETH),
            "USDC": to_checksum(usdc),
        }
        with (tmp_path / "said").open("wb") as output:
            process = subprocess.Popen(
                ["bash", "-c", script], cwd=tmp_path, env=environ, stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip
        try:
            trio.run(until, (tmp_path / "made").exists, STORY_S)
            paths = (tmp_path / "keys").glob("*.address")
            accounts = {path.stem: parse_address(path.read_text().strip(), path.stem) for path in paths}
            assert len(accounts) == 5
            on_chain(funded, usdc, accounts)
            before = on_chain(units, usdc, accounts["trader"])
            (tmp_path / "funded").touch()
            process.wait(STORY_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        said = (tmp_path / "said").read_text()
        logs = "".join(path.read_text()[-1_000:] for path in tmp_path.glob("*.log"))
        assert process.returncode == 0, said[-3_000:] + logs
        assert "COMPLETED" in said
        received = on_chain(units, usdc, accounts["trader"]) - before
        assert 49 * USDC_ONE < received <= 2 * 2_490 * USDC_ONE // 100  # of 0.02 WETH at 2,490
