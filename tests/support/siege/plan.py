"""Plan of a siege: addresses at the venue and the chain, empty wallets, a few contracts."""

from msgspec import Struct

from cambist.crypto.keccak import keccak256
from cambist.crypto.secp256k1 import SigningKey

NETWORKS = [f"127.{number}.0.1" for number in range(11, 19)]
"""Source addresses of the besiegers, each of a network of its own. Honest ones: 127.0.0 to 127.0.2."""
CONNECTIONS = 64
WALLETS = 300


class SiegePlan(Struct, frozen=True, kw_only=True):
    """Plan of a siege, as the besiegers' process reads it.

    Attributes:
        port: of the venue, at 127.0.0.1.
        seconds: length of the siege.
        far_chain_id, far_node: the second chain, and the URL of its node.
        tokens: address of each token by symbol, the same on both chains, with `FAKE`, which tells everybody
            that it is rich.
        delta, rfq: contracts, with the names of their domains.
        rich: address of a stranger with many native tokens.
        victim: address of an honest trader that has allowed its tokens.
        bridger: address of an honest trader whose tokens are swapped after a bridge.
        greedy_key: key of a besieger with a few tokens on both chains.
        turncoats: wallets with a WETH each, that sign in simulations alone.
        wallet: honest contract with tokens, in whose name anybody may submit orders.
        burner: contract of the second chain that burns all gas when it receives native tokens.
    """

    port: int
    seconds: float
    chain_id: int
    far_chain_id: int
    far_node: str
    tokens: dict[str, str]
    delta: str
    delta_domain: tuple[str, str]
    rfq: str
    rfq_domain: str
    rich: str
    victim: str
    bridger: str
    greedy_key: str
    turncoats: tuple[str, ...]
    wallet: str
    burner: str


def wallet_key(number: int) -> SigningKey:
    """Key of a wallet that has nothing."""
    return SigningKey(keccak256(b"a wallet of the siege, %d" % number))
