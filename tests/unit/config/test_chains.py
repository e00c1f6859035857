"""The shipped chains."""

import msgspec
import pytest

from cambist.config.chains import SHIPPED_CHAINS, ChainSettings
from cambist.crypto.addresses import checked_address


@pytest.mark.parametrize(
    ("chain_id", "name", "native", "wrapped"),
    [
        (1, "Ethereum", "ETH", "0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2"),
        (10, "Optimism", "ETH", "0x4200000000000000000000000000000000000006"),
        (56, "BNB Smart Chain", "BNB", "0xbb4CdB9CBd36B01bD1cBaEBF2De08d9173bc095c"),
        (100, "Gnosis", "xDAI", "0xe91D153E0b41518A2Ce8Dd3D7944Fa863463a97d"),
        (130, "Unichain", "ETH", "0x4200000000000000000000000000000000000006"),
        (137, "Polygon", "POL", "0x0d500B1d8E8eF31E21C99d1Db9A6444d3ADf1270"),
        (8453, "Base", "ETH", "0x4200000000000000000000000000000000000006"),
        (42161, "Arbitrum One", "ETH", "0x82aF49447D8a07e3bd95BD0d56f35241523fBab1"),
        (43114, "Avalanche C-Chain", "AVAX", "0xB31f66AA3C1e785363F0875A1B74E27b85FD66c7"),
    ],
)
def test_shipped_chain(chain_id: int, name: str, native: str, wrapped: str) -> None:
    chain = SHIPPED_CHAINS[chain_id]
    assert (chain.name, chain.native_symbol, chain.wrapped_native) == (name, native, wrapped)
    assert chain.confirmations >= 1
    checked_address(chain.wrapped_native)


@pytest.mark.parametrize("chain_id", SHIPPED_CHAINS)
def test_no_contract_of_ours_is_claimed_to_be_anywhere(chain_id: int) -> None:
    chain = SHIPPED_CHAINS[chain_id]
    assert {chain.router, chain.delta_contract, chain.rfq_contract, chain.executor, chain.fee_vault} == {""}


@pytest.mark.parametrize("chain_id", SHIPPED_CHAINS)
def test_each_shipped_chain_has_an_explorer_of_its_own(chain_id: int) -> None:
    others = {chain.explorer_url for other, chain in SHIPPED_CHAINS.items() if other != chain_id}
    assert SHIPPED_CHAINS[chain_id].explorer_url.startswith("https://")
    assert SHIPPED_CHAINS[chain_id].explorer_url not in others


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("etherscan.io", "http://"),
        ("javascript:alert(1)", "http://"),
        ("https://etherscan.io/", "slash at its end"),
        ("https://etherscan.io?a=1", "neither a query"),
        ("https://user@etherscan.io", "neither user nor fragment"),
        ("https://", "host"),
    ],
)
def test_an_explorer_is_a_url_to_which_paths_can_be_appended(url: str, reason: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=reason):
        msgspec.convert({"name": "x", "explorer_url": url}, ChainSettings)


def test_signing_domains_are_those_that_clients_hard_code() -> None:
    chain = ChainSettings(name="devnet")
    assert (chain.rfq_domain_name, chain.delta_domain_name, chain.delta_domain_version) == (
        "AUGUSTUS RFQ",
        "Portikus",
        "2.0.0",
    )
    assert (chain.delta, chain.market, chain.rfq) == (False, False, False)


def test_a_misspelt_setting_of_a_chain_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="rfq_contrat"):
        msgspec.convert({"name": "x", "rfq_contrat": "0x"}, ChainSettings)
