"""Tokens that a venue lists: the operator's own table, keyed by chain and address."""

import msgspec

from . import limits


class TokenSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A listed ERC-20 token.

    Attributes:
        chain_id: id of the token's chain.
        address: address of the token's contract.
        symbol: unique within the chain; trading endpoints take it in place of the address.
        decimals: decimals that the contract reports, 0 to 36.
        name: the token's name for people, e.g. `USD Coin`; the symbol if empty.
        logo_uri: URL of the token's picture, for clients that show one; empty for none.
        stable_usd: whether the token counts as one US dollar, and so gives other tokens a US dollar price.
        permit_only: whether a Delta order that sells the token must carry a permit
            (choices.md#signatures-and-permits).
    """

    chain_id: int
    address: str
    symbol: str
    decimals: int
    name: str = ""
    logo_uri: str = ""
    stable_usd: bool = False
    permit_only: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.decimals <= limits.TOKEN_DECIMALS_MAX:
            raise ValueError(f"decimals is 0 to {limits.TOKEN_DECIMALS_MAX}, got {self.decimals}")
        if not self.symbol or self.symbol.startswith("0x"):
            raise ValueError("symbol is a name that does not start with 0x")
        if self.logo_uri and not self.logo_uri.startswith(("https://", "ipfs://")):
            raise ValueError(f"logo_uri starts with https:// or ipfs://, got {self.logo_uri!r}")
