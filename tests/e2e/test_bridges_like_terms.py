"""The bridge module's arithmetic is that of bridge_terms.py, whatever the terms; on the embedded chain."""

import time

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st

from cambist.codecs.bridges.bridge_terms import (
    PPM_ONE,
    SCALING_MAX,
    SELECTORS,
    AcrossTerms,
    BridgeFee,
    BridgeKind,
    CctpTerms,
    input_of,
    output_of,
    pack_terms,
)
from cambist.codecs.contracts.abi import Dynamic, address_word, bytes_tail, decode_uint, encode, uint_word
from cambist.config.errors import Reverted
from cambist.config.limits import UINT256_MAX
from cambist.engine.chain.artifacts import artifact, known_errors
from cambist.engine.chain.deploy.create2_factory import FACTORY
from cambist.engine.chain.deploy.deploy import create
from cambist.engine.chain.port import EthCall
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from support.chain.world import NOBODY, ONE, person

pytestmark = pytest.mark.needs("pyrevm")

FAR = 10
FUNCTIONS = {name.partition("(")[0]: four for name, four in artifact("Bridges").selectors().items()}
fees = st.builds(
    BridgeFee,
    st.integers(0, PPM_ONE - 1) | st.sampled_from([0, 1, 500, PPM_ONE - 1]),
    st.integers(0, 2**128 - 1) | st.integers(0, 10**9),
)
amounts = st.integers(0, UINT256_MAX) | st.integers(0, 10**30) | st.integers(0, 1_000)
outputs = st.integers(0, 10**38) | st.integers(0, 1_000)
"""No product of them with a scale and a million exceeds a word."""
scalings = st.integers(-SCALING_MAX, SCALING_MAX)


class Module:
    """The module on a chain, asked by calls that change nothing."""

    def __init__(self, chain: EmbeddedChain, address: bytes) -> None:
        self.chain = chain
        self.address = address

    async def ask(
        self, function: str, kind: BridgeKind, fee: BridgeFee, scaling: int, *amounts: int
    ) -> bytes:
        data = pack_terms(
            AcrossTerms(fee, 60, NOBODY, 0) if kind is BridgeKind.ACROSS else CctpTerms(fee, 0, 2)
        )
        bridge = encode(
            SELECTORS[kind].ljust(32, b"\0"),
            uint_word(FAR),
            address_word(b"\1" * 20),
            uint_word(scaling % (UINT256_MAX + 1)),
            bytes_tail(data),
        )
        call = FUNCTIONS[function] + encode(Dynamic(bridge), *map(uint_word, amounts))
        return await self.chain.call(EthCall(self.address, call))


@pytest.fixture(scope="module")
def module() -> Module:
    async def made() -> Module:
        chain = EmbeddedChain(31_337, lambda: int(time.time()), {}, known_errors())
        await chain.set_balance(person(0).address, ONE)
        assert await chain.code(FACTORY)
        words = address_word(b"\2" * 20) + address_word(b"\3" * 20)
        return Module(chain, await create(chain, person(0), "Bridges", words))

    return trio.run(made)


@given(st.sampled_from(BridgeKind), fees, scalings, amounts)
@example(BridgeKind.ACROSS, BridgeFee(0, 0), SCALING_MAX, UINT256_MAX)
@example(BridgeKind.ACROSS, BridgeFee(PPM_ONE - 1, 2**128 - 1), -SCALING_MAX, UINT256_MAX)
def test_what_arrives(module: Module, kind: BridgeKind, fee: BridgeFee, scaling: int, amount: int) -> None:
    """A product that no word holds is refused; Python's has no such bound."""
    scaling = 0 if kind is BridgeKind.CCTP else scaling
    wanted = output_of(fee, scaling, amount)

    async def story() -> None:
        if amount * fee.ppm > UINT256_MAX or wanted > UINT256_MAX:
            with pytest.raises(Reverted):
                await module.ask("outputOf", kind, fee, scaling, amount)
        else:
            assert decode_uint(await module.ask("outputOf", kind, fee, scaling, amount)) == wanted

    trio.run(story)


@given(st.sampled_from(BridgeKind), fees, scalings, outputs, outputs)
@example(BridgeKind.CCTP, BridgeFee(500, 30_000), 0, 0, 1)
def test_what_has_to_enter(
    module: Module, kind: BridgeKind, fee: BridgeFee, scaling: int, least: int, expected: int
) -> None:
    scaling = 0 if kind is BridgeKind.CCTP else scaling
    inputs = [input_of(fee, scaling, output) for output in (least, expected)]

    async def story() -> None:
        answer = await module.ask("inputsOf", kind, fee, scaling, least, expected)
        assert [decode_uint(answer, 0), decode_uint(answer, 1)] == inputs
        for output, needed in zip((least, expected), inputs, strict=True):
            if needed * fee.ppm <= UINT256_MAX:
                assert decode_uint(await module.ask("outputOf", kind, fee, scaling, needed)) >= output

    trio.run(story)
