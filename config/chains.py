"""The chains that ship as configuration: name, native token and its wrapped form, roles.

A chain is served in a role if its settings say so; contract addresses are filled in by the operator
(choices.md#chains-and-tokens). Roles: Delta is served on the quote chains (spec 1.27.11) except 100 and
43114, Market on the chains of spec 1.27.12, RFQ on the chains of spec 2.1.18.

The operator also fills in the addresses of bridges' contracts. CCTP's numbers of the chains (domains) ship as
configuration, and so do the addresses of the chains' block explorers.

The wrapped native tokens are the canonical ones of each chain. `confirmations` is the number of blocks after
which an order is final, about two minutes of blocks except on chains that finalise at once.
"""

import msgspec

from . import limits
from .sections.endpoint_url import HTTP, check_url
from .sections.nodes import NodeSettings


class StrategySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of a yield strategy: a vault (ERC-4626) from whose shares orders may sell.

    Attributes:
        vault: address of the vault, whose asset is read from the chain.
        name: the strategy's name for people.
        fee_bps: share of the yield that the vault keeps, basis points; the gross APR follows from this share.
    """

    vault: str
    name: str
    fee_bps: int = 0


class ChainSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of one chain: native token, served roles, contract addresses and nodes.

    Attributes:
        name: the chain's name for people.
        native_symbol: symbol of the native token.
        wrapped_native: address of the native token's ERC-20 form; empty if none is configured.
        confirmations: number of blocks after which a settlement is final.
        delta, market, rfq: whether Delta orders, Market swaps and OTC orders are served on the chain; `rfq`
            is True by default for a local development chain (devnet).
        router, delta_contract, rfq_contract, executor, fee_vault: contract addresses; empty until deployed.
        arrivals: contract that swaps what a bridge delivers; empty without such swaps.
        spoke_pool: Across's contract for deposits and fills; empty without Across.
        token_messenger, message_transmitter: contracts of CCTP (V2) for burns and messages; empty without
            CCTP.
        cctp_domain: Circle's number of the chain; None if CCTP does not serve the chain.
        rfq_domain_name: name of the RFQ contract's signing domain (interop.md section 1).
        delta_domain_name, delta_domain_version: name and version of the Delta contract's signing domain
            (interop.md section 2).
        strategies: yield strategies from which orders may sell (ProductiveOrder).
        handlers: addresses of contracts that may trade orders for their owners (ExternalOrder); `*` admits
            any contract, and an empty list admits no contract. The default is an empty list, and `*` on a
            local development chain (devnet).
        node: settings of the chain's nodes.
        wallet_url: http or https URL of a node whose own accounts sign for pages in browsers; only on a local
            development chain (devnet). Empty for none.
        explorer_url: http or https URL of the chain's block explorer, to which pages append `/tx/HASH`,
            `/address/ADDRESS` and `/block/NUMBER`; without a slash at its end. Empty for none.
    """

    name: str
    native_symbol: str = "ETH"
    wrapped_native: str = ""
    confirmations: int = 10
    delta: bool = False
    market: bool = False
    rfq: bool = False
    router: str = ""
    delta_contract: str = ""
    rfq_contract: str = ""
    executor: str = ""
    fee_vault: str = ""
    arrivals: str = ""
    spoke_pool: str = ""
    token_messenger: str = ""
    message_transmitter: str = ""
    cctp_domain: int | None = None
    rfq_domain_name: str = limits.RFQ_DOMAIN_NAME
    delta_domain_name: str = limits.DELTA_DOMAIN_NAME
    delta_domain_version: str = limits.DELTA_DOMAIN_VERSION
    strategies: tuple[StrategySettings, ...] = ()
    handlers: tuple[str, ...] = ()
    node: NodeSettings = NodeSettings()
    wallet_url: str = ""
    explorer_url: str = ""

    def __post_init__(self) -> None:
        if self.explorer_url:
            check_url("explorer_url", self.explorer_url, HTTP)
            if "?" in self.explorer_url or self.explorer_url.endswith("/"):
                raise ValueError(
                    "explorer_url has neither a query nor a slash at its end: paths are appended"
                )
        if self.wallet_url:
            check_url("wallet_url", self.wallet_url, HTTP)


DEVNET_CHAINS = (31_337, 31_338)
"""Chain ids of development chains (choices.md#chains-and-tokens)."""

CONTRACT_SETTINGS = ("router", "delta_contract", "rfq_contract", "executor", "fee_vault")
BRIDGE_CONTRACT_SETTINGS = ("arrivals", "spoke_pool", "token_messenger", "message_transmitter")
ADDRESS_SETTINGS = ("wrapped_native", *CONTRACT_SETTINGS, *BRIDGE_CONTRACT_SETTINGS)
"""Names of the settings of a chain whose values are addresses."""


SPOKE_POOLS = {
    1: "0x5c7BCd6E7De5423a257D81B442095A1a6ced35C5",
    10: "0x6f26Bf09B1C792e3228e5467807a900A503c0281",
    137: "0x9295ee1d8C5b022Be115A2AD3c30C72E34e7F096",
    8453: "0x09aea4b2242abC8bb4BB78D537A67a245A7bEC64",
    42161: "0xe35e9842fceaCA96570B734083f4a58e8F7C5f2A",
}
"""Chain id -> Across's pool; source: across-protocol/contracts, deployments/deployments.json."""
CCTP_MESSENGER = "0x28b5a0e9C621a5BadaA536219b3a228C8168cf5d"
"""TokenMessengerV2 on the chains of CCTP_DOMAINS; source: developers.circle.com, "Contract addresses"."""
CCTP_DOMAINS = {1: 0, 10: 2, 130: 10, 137: 7, 8453: 6, 42161: 3, 43114: 1}
"""Chain id -> Circle's number of the chain; source: developers.circle.com, "CCTP supported blockchains"."""


EXPLORERS = {
    1: "https://etherscan.io",
    10: "https://optimistic.etherscan.io",
    56: "https://bscscan.com",
    100: "https://gnosisscan.io",
    130: "https://uniscan.xyz",
    137: "https://polygonscan.com",
    8453: "https://basescan.org",
    42161: "https://arbiscan.io",
    43114: "https://snowtrace.io",
}
"""Chain id -> the chain's block explorer; source: ethereum-lists/chains, `explorers`."""


def _chain(chain_id: int, name: str, symbol: str, wrapped_native: str, confirmations: int) -> ChainSettings:
    return ChainSettings(
        name=name,
        native_symbol=symbol,
        wrapped_native=wrapped_native,
        confirmations=confirmations,
        delta=chain_id in limits.DELTA_CHAINS,
        market=chain_id in limits.MARKET_CHAINS,
        rfq=chain_id in limits.RFQ_CHAINS,
        cctp_domain=CCTP_DOMAINS.get(chain_id),
        explorer_url=EXPLORERS.get(chain_id, ""),
    )


_ROWS = (
    (1, "Ethereum", "ETH", "0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2", 12),
    (10, "Optimism", "ETH", "0x4200000000000000000000000000000000000006", 60),
    (56, "BNB Smart Chain", "BNB", "0xbb4CdB9CBd36B01bD1cBaEBF2De08d9173bc095c", 40),
    (100, "Gnosis", "xDAI", "0xe91D153E0b41518A2Ce8Dd3D7944Fa863463a97d", 24),
    (130, "Unichain", "ETH", "0x4200000000000000000000000000000000000006", 120),
    (137, "Polygon", "POL", "0x0d500B1d8E8eF31E21C99d1Db9A6444d3ADf1270", 64),
    (8453, "Base", "ETH", "0x4200000000000000000000000000000000000006", 60),
    (42161, "Arbitrum One", "ETH", "0x82aF49447D8a07e3bd95BD0d56f35241523fBab1", 480),
    (43114, "Avalanche C-Chain", "AVAX", "0xB31f66AA3C1e785363F0875A1B74E27b85FD66c7", 1),
)
SHIPPED_CHAINS: dict[int, ChainSettings] = {row[0]: _chain(*row) for row in _ROWS}
"""chain id -> the chain's shipped settings, which the operator's settings override."""
