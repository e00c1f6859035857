"""Scripts with ethers and viem swap through `cambist serve` on `cambist devnet`; makers are processes too."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from cambist.crypto.addresses import to_checksum
from support.oracles import Stories
from support.venue.venue_processes import Running, venue_processes
from support.venue.venue_role import CHAIN_ID, GRIDS, KEYS

pytestmark = pytest.mark.oracle

ONE, USDC = 10**18, 10**6
TRADERS = {"ethers": KEYS[6], "viem": KEYS[7]}
SWAPS = [
    ("SELL", "WETH", "USDC", 2 * ONE),
    ("BUY", "WETH", "USDC", 1_000 * USDC),
    ("SELL", "ETH", "USDC", ONE),
    ("SELL", "USDC", "ETH", 500 * USDC),
    ("SELL", "USDC", "DAI", 100 * USDC),
]
HOPS = {("USDC", "DAI"): [2]}


DEEP_GRIDS = {
    name: {
        pair: {side: [*levels[:-1], [levels[-1][0], "2000"]] for side, levels in grid.items()}
        for pair, grid in quoted.items()
    }
    for name, quoted in GRIDS.items()
}
"""GRIDS with so much at the worst level that all scripts together, which come from one address and show no
consent, stay within their share of each maker's stock.
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    pairs = [(src, dest) for _, src, dest, _ in SWAPS]
    with venue_processes(tmp_path_factory.mktemp("venue"), pairs, grids=DEEP_GRIDS) as processes:
        yield processes


def run_script(
    stories: Stories, library: str, running: Running, src: str, dest: str, amount: int, side: str
) -> dict[str, Any]:
    key = f"0x{TRADERS[library].secret32().hex()}"
    tokens = [running.devnet.text(symbol) for symbol in (src, dest)]
    return stories.told(f"{library}_swap", running.url, running.rpc, key, *tokens, str(amount), side)


@pytest.mark.parametrize(
    ("side", "src", "dest", "amount"), SWAPS, ids=[f"{side} {src} {dest}" for side, src, dest, _ in SWAPS]
)
@pytest.mark.parametrize("library", TRADERS)
def test_a_script_swaps_and_gets_what_was_quoted(
    stories: Stories, running: Running, library: str, side: str, src: str, dest: str, amount: int
) -> None:
    told = run_script(stories, library, running, src, dest, amount, side)
    assert told["status"] == 1
    assert told["from"] == to_checksum(TRADERS[library].address)
    assert told["to"] == told["router"] == running.devnet.text("router")
    assert told["chainId"] == CHAIN_ID
    assert (told["spent"], told["received"]) == (told["quoted"]["src"], told["quoted"]["dest"])
    assert (told["spent"] if side == "SELL" else told["received"]) == str(amount)
    assert told["value"] == (str(amount) if src == "ETH" else "0")
    assert told["allowanceLeft"] == "0"
    assert set(told["makers"]) <= set(GRIDS)
    assert told["hops"] == HOPS.get((src, dest), [1] * len(told["hops"]))


def test_what_is_sold_twice_over_is_split_between_both_makers(stories: Stories, running: Running) -> None:
    told: Mapping[str, Any] = run_script(stories, "ethers", running, "WETH", "USDC", 8 * ONE, "SELL")
    assert set(told["makers"]) == {"alpha", "beta"}
    assert told["received"] == told["quoted"]["dest"]
