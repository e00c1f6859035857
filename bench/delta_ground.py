"""Embedded chain on which every owner of the load's orders can sell, and settings of a venue on it."""

import time

from msgspec import Struct

from bench.delta_work import CHAIN_ID, DOMAIN_NAME, DOMAIN_VERSION, HELD, OWNERS, Ground, owner_key
from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import bytes_tail, encode, selector, uint_word
from cambist.codecs.transactions import Transaction, sign_transaction
from cambist.crypto.addresses import to_checksum
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.deploy.deploy import DeployedContracts, DeploymentPlan, create, deploy
from cambist.engine.chain.port import DevChain

OWNER, RELAYER = SigningKey(b"\x0a" * 32), SigningKey(b"\x0b" * 32)
_ONE = 10**18
_GAS = 100_000
_SIGNATURES = ", wrong_signatures = { per_s = 0.2, burst = 20 }"
_NODE = 'node.urls = ["http://{node}"]\nnode.ws_urls = ["ws://{node}"]'
_DEPOSIT = selector("deposit()")
_SETTINGS = """
state_dir = "."
route_seal_keys = ["env:ROUTE_SEAL"]
[chains.{chain_id}]
name = "bench"
delta = true
market = true
rfq = true
router = "{router}"
delta_contract = "{delta}"
rfq_contract = "{rfq}"
executor = "{executor}"
fee_vault = "{fee_vault}"
wrapped_native = "{weth}"
confirmations = {confirmations}
{node}
[keys.relayer]
source = "env:RELAYER_KEY"
[relayers.{chain_id}]
key = "relayer"
[venue.rate_tiers]
public = {{ per_s = 1000000, burst = 1000000{signatures} }}
keyed = {{ per_s = 1000000, burst = 1000000 }}
[[tokens]]
chain_id = {chain_id}
address = "{weth}"
symbol = "WETH"
decimals = 18
[[tokens]]
chain_id = {chain_id}
address = "{usdc}"
symbol = "USDC"
decimals = 6
stable_usd = true
"""


class Deployed(Struct, frozen=True):
    """Contracts and tokens that are deployed on the chain of a load test."""

    at: DeployedContracts
    weth: bytes
    usdc: bytes

    @property
    def ground(self) -> Ground:
        """Addresses of the contracts and tokens that the load's orders name."""
        return Ground(self.at.delta, self.weth, self.usdc)


def now_s() -> int:
    """Return the present time in Unix seconds."""
    return int(time.time())


async def deployed(chain: DevChain, owners: int = OWNERS) -> Deployed:
    """Deploy contracts and tokens; give the first `owners` owners tokens to sell, and the allowance."""
    for key in (OWNER, RELAYER):
        await chain.set_balance(key.address, 1_000_000 * _ONE)
    weth = await create(chain, OWNER, "DevWeth")
    permit2 = await create(chain, OWNER, "DevPermit2")
    usdc = await create(
        chain, OWNER, "DevToken", encode(bytes_tail(b"USDC"), bytes_tail(b"USDC"), uint_word(6))
    )
    plan = DeploymentPlan(
        owner=OWNER.address,
        weth=weth,
        permit2=permit2,
        protocol=b"\x9b" * 20,
        rfq_name="AUGUSTUS RFQ",
        delta_name=DOMAIN_NAME,
        delta_version=DOMAIN_VERSION,
        relayers=(RELAYER.address,),
        caps=dict.fromkeys((weth, usdc), (1 << 256) - 1),
        is_open=True,
    )
    found = Deployed(await deploy(chain, OWNER, plan), weth, usdc)
    approval = calldata.approve(found.at.delta, (1 << 256) - 1)
    for number in range(owners):
        key = owner_key(number)
        await chain.set_balance(key.address, HELD + _ONE)
        for nonce, (data, wei) in enumerate(((_DEPOSIT, HELD), (approval, 0))):
            await chain.send_raw(await _signed(chain, key, nonce, weth, data, wei))
    return found


async def _signed(chain: DevChain, key: SigningKey, nonce: int, to: bytes, data: bytes, wei: int) -> bytes:
    fees = await chain.fees()
    price = 2 * fees.base_fee_wei + fees.tip_wei
    return sign_transaction(Transaction(CHAIN_ID, nonce, fees.tip_wei, price, _GAS, to, wei, data), key).raw


def settings_text(
    world: Deployed, confirmations: int = 1, *, is_bounded: bool = False, node: str = ""
) -> str:
    """Return the text of the settings of a venue on the deployed contracts.

    Args:
        confirmations: number of blocks after which a block is final.
        node: host and port of the chain's node; empty for a chain that is passed to the venue.
        is_bounded: whether wrong signatures are rate-limited, as by default; no other rate limit applies.
    """
    at = world.at
    return _SETTINGS.format(
        chain_id=CHAIN_ID,
        router=to_checksum(at.router),
        delta=to_checksum(at.delta),
        rfq=to_checksum(at.rfq),
        executor=to_checksum(at.executor),
        fee_vault=to_checksum(at.fee_vault),
        weth=to_checksum(world.weth),
        usdc=to_checksum(world.usdc),
        confirmations=confirmations,
        node=_NODE.format(node=node) if node else "",
        signatures=_SIGNATURES if is_bounded else "",
    )


def environ() -> dict[str, str]:
    """Return the environment variables that the settings of the venue refer to."""
    return {"ROUTE_SEAL": "the seal of all routes", "RELAYER_KEY": RELAYER.secret32().hex()}
