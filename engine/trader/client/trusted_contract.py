"""The contract that a venue names: trusted if its code is that of this cambist release. A contract for which
orders are signed also has to return its signing domain.

The Delta contract runs code of its settlers as its own, and hands tokens to its bridges' contract. The
addresses of these modules are immutables, which a comparison of codes leaves out. The code at each of these
addresses is therefore compared too.

The code of a pinned address and of its modules is not checked: the trader vouches for this code.

Source: EIP-712; contracts/lib/Eip712.sol.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from ....codecs.contracts.abi import WORD_BYTES, selector
from ....config.errors import ChainError, ConfigError, Reverted, VenueError
from ....crypto.addresses import to_checksum
from ....crypto.eip712 import signing_digest
from ...chain.deploy.verification import is_code_of
from ...chain.port import Chain, EthCall
from ...chain.together import all_of, both
from .client import VenueClient
from .safety import hold, told_address, told_number

_DOMAIN_SEPARATOR = selector("DOMAIN_SEPARATOR()")


class TradingContract(Struct, frozen=True):
    """A kind of contract (Router, Delta, RFQ) that a trade calls or is signed for, as this release builds it.

    Attributes:
        artifact: name of the build artifact with the contract's code.
        entry: Python attribute that holds the contract's address in a chain's decoded entry of
            contracts.json.
        member: JSON name of that attribute, for errors.
        option: command-line option that pins the contract's address.
        name: the contract's name in errors.
        modules: contracts that this contract trusts with its users' tokens: name of the function that returns
            the address -> name of the build artifact.
    """

    artifact: str
    entry: str
    member: str
    option: str
    name: str
    modules: Mapping[str, str] = MappingProxyType({})


ROUTER = TradingContract("Router", "router", "augustusV6_2", "--router", "Market router")
DELTA = TradingContract(
    "Delta",
    "delta",
    "delta",
    "--delta",
    "Delta contract",
    MappingProxyType(
        {
            "swapSettler": "SwapSettler",
            "twapSettler": "TwapSettler",
            "productiveSettler": "ProductiveSettler",
            "externalSettler": "ExternalSettler",
            "bridges": "Bridges",
        }
    ),
)
RFQ = TradingContract("Rfq", "rfq", "augustusRFQ", "--rfq", "RFQ contract")


class SigningContract(Struct, frozen=True):
    """The deployed contract for which a trader signs orders, with its EIP-712 domain.

    Attributes:
        address: 20 bytes.
        separator: domain separator, 32 bytes, as the contract returns it.
    """

    chain_id: int
    address: bytes
    separator: bytes

    def digest(self, struct_hash: bytes) -> bytes:
        """The 32-byte EIP-712 digest to sign for a struct, given the struct's hash, in the contract's
        domain."""
        return signing_digest(self.separator, struct_hash)


async def trusted_address(
    chain: Chain, venue: VenueClient | None, contract: TradingContract, pinned: bytes | None
) -> bytes:
    """The address of the venue's contract, 20 bytes, after a check that the code there is that of this
    cambist release.

    Args:
        venue: the venue whose contracts.json names the contract; without a venue the address must be pinned.
        pinned: the address that the trader insists on; its code is not checked.

    Raises:
        VenueError: the venue names no contract of this kind, or the code of the contract or of a module is
            not this release's.
        UnsafeTransaction: the venue names another contract than the pinned one.
        ConfigError: neither the venue nor an option names the contract.
        ChainError: the contract does not name a module, or the chain does not answer.
    """
    address = await _address(chain, venue, contract, pinned)
    await _check_codes(chain, address, contract, pinned)
    return address


async def _address(
    chain: Chain, venue: VenueClient | None, contract: TradingContract, pinned: bytes | None
) -> bytes:
    """The address of the venue's contract, 20 bytes, before the check of its code."""
    if venue is not None:
        return await _named(chain, venue, contract, pinned)
    if pinned is None:
        raise ConfigError(contract.option, "is needed without --venue")
    return pinned


async def _check_codes(chain: Chain, address: bytes, contract: TradingContract, pinned: bytes | None) -> None:
    """Check the code of a contract that is not pinned, and of its modules. A node far away is asked twice."""
    if pinned is not None:
        return
    code, answers = await both(
        lambda: chain.code(address),
        lambda: _answers(chain, address, [selector(f"{getter}()") for getter in contract.modules]),
    )
    # The contract is judged before its modules: only trusted code names its modules truthfully.
    _check_code(chain, address, code, contract.artifact, contract)
    modules = [
        _address_of(answer, address, getter) for getter, answer in zip(contract.modules, answers, strict=True)
    ]
    codes = await all_of(chain.code, modules, len(modules)) if modules else []
    for module, there, artifact in zip(modules, codes, contract.modules.values(), strict=True):
        _check_code(chain, module, there, artifact, contract)


async def address_in(chain: Chain, contract: bytes, getter: str) -> bytes:
    """The address, 20 bytes, that a contract's function without parameters returns.

    Raises:
        ChainError: the contract returns no address, or the chain does not answer.
    """
    (answer,) = await _answers(chain, contract, [selector(f"{getter}()")])
    return _address_of(answer, contract, getter)


def _address_of(answer: bytes, contract: bytes, getter: str) -> bytes:
    return told_number(answer, f"{to_checksum(contract)} has no {getter}()").to_bytes(WORD_BYTES)[-20:]


async def _answers(chain: Chain, contract: bytes, calls: Sequence[bytes]) -> list[bytes]:
    """Call a contract's functions at once; the answer of a call that reverts is empty."""

    async def answer(data: bytes) -> bytes:
        try:
            return await chain.call(EthCall(contract, data))
        except Reverted:
            return b""

    return await all_of(answer, calls, len(calls)) if calls else []


async def signing_contract(
    chain: Chain, venue: VenueClient | None, contract: TradingContract, pinned: bytes | None
) -> SigningContract:
    """The contract that a venue names or a trader pins, with its signing domain; checked as by
    `trusted_address`.

    Raises:
        VenueError, UnsafeTransaction, ConfigError: as `trusted_address`.
        ChainError: the contract does not return its domain separator.
    """
    address = await _address(chain, venue, contract, pinned)
    _, (separator,) = await both(
        lambda: _check_codes(chain, address, contract, pinned),
        lambda: _answers(chain, address, [_DOMAIN_SEPARATOR]),
    )
    if len(separator) != WORD_BYTES:
        raise ChainError(f"{to_checksum(address)} has no signing domain: DOMAIN_SEPARATOR()")
    return SigningContract(chain.chain_id, address, separator)


def _check_code(chain: Chain, address: bytes, code: bytes, artifact: str, contract: TradingContract) -> None:
    if not is_code_of(artifact, code):
        raise VenueError(
            f"the code at {to_checksum(address)} on chain {chain.chain_id} is not that of this release's "
            f"{artifact}: {contract.option} pins an address that you trust"
        )


async def _named(chain: Chain, venue: VenueClient, contract: TradingContract, pinned: bytes | None) -> bytes:
    entry = (await venue.contracts()).chains.get(str(chain.chain_id))
    text: str | None = None if entry is None else getattr(entry, contract.entry)
    if text is None:
        raise VenueError(f"the venue has no {contract.name} on chain {chain.chain_id}")
    member = f"contracts.json {contract.member}"
    address = told_address(text, member)
    if pinned is not None:
        hold([(member, to_checksum(pinned), to_checksum(address))])
    return address
