"""The console's checks of a bridge: any other bridge than the agreed one is refused, and fees are exact."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cambist.codecs.bridges.bridge_terms import (
    SELECTORS,
    AcrossTerms,
    BridgeFee,
    BridgeKind,
    BridgeTerms,
    CctpTerms,
    fee_of,
    output_of,
    pack_terms,
)
from cambist.codecs.contracts.abi import selector
from cambist.config.chains import CCTP_DOMAINS, CCTP_MESSENGER, SHIPPED_CHAINS, SPOKE_POOLS
from cambist.config.limits import NATIVE_PLACEHOLDER
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from support.oracles import Stories

pytestmark = pytest.mark.oracle

Ask = Callable[..., Any]
HERE, THERE = 31_337, 31_338
SRC, VIA, DEST, OTHER = ("0x" + digit * 40 for digit in "3456")
ENTERING = 1_000_000
FEE = BridgeFee(440, 200)
ARRIVING = output_of(FEE, 0, ENTERING)
ACROSS = AcrossTerms(FEE, 3_600, bytes(20), 0)
WISH: dict[str, Any] = {
    "chainId": HERE,
    "destChainId": THERE,
    "srcToken": SRC,
    "destToken": DEST,
    "destDecimals": 6,
    "side": "SELL",
    "amount": "7",
    "viaDecimals": {VIA: 6, SRC: 18},
}


@pytest.fixture
def ask(stories: Stories) -> Ask:
    def asked(function: str, **given: Any) -> Any:
        return stories.told("console_pure", function, json.dumps(given))

    return asked


def entry(chain_id: int, address: str, amount: int) -> dict[str, Any]:
    """An amount of a route."""
    return {"token": {"chainId": chain_id, "address": address}, "amount": str(amount)}


def route(terms: BridgeTerms = ACROSS, scaling: int = 0, arriving: int = ARRIVING) -> dict[str, Any]:
    """A route of a venue for the wish."""
    kind = BridgeKind.ACROSS if isinstance(terms, AcrossTerms) else BridgeKind.CCTP
    params = {
        "protocolSelector": to_hex(SELECTORS[kind]),
        "outputToken": DEST,
        "scalingFactor": scaling,
        "protocolData": to_hex(pack_terms(terms)),
    }
    return {
        "origin": {"input": entry(HERE, SRC, 7), "output": entry(HERE, VIA, ENTERING)},
        "destination": {"input": entry(THERE, DEST, arriving), "output": entry(THERE, DEST, arriving)},
        "bridge": {"protocol": "any", "estimatedTimeMs": 9_000, "contractParams": params},
    }


def changed(at: str, value: Any) -> dict[str, Any]:
    """The route with another member, such as `bridge.contractParams.outputToken`."""
    lied = copy.deepcopy(route())
    *path, last = at.split(".")
    place = lied
    for name in path:
        place = place[name]
    place[last] = value
    return lied


def test_the_terms_of_a_bridge_are_read(ask: Ask) -> None:
    told = ask("bridge", route=route(), wish=WISH)
    assert told["signed"] == {**route()["bridge"]["contractParams"], "destinationChainId": THERE}
    assert (told["via"], told["fee"], told["entering"]) == (VIA, str(fee_of(FEE, ENTERING)), str(ENTERING))
    assert (told["kind"], told["fillWithinS"], told["estimatedMs"]) == ("Across", 3_600, 9_000)
    burnt = route(CctpTerms(BridgeFee(0, 10), 2_000, 3), arriving=ENTERING - 10)
    assert ask("bridge", route=burnt, wish=WISH)["kind"] == "CCTP"


@pytest.mark.parametrize(
    ("at", "value", "named"),
    [
        ("bridge", None, "route.bridge"),
        ("origin.input.token", {"chainId": HERE, "address": OTHER}, "route.origin.input"),
        ("origin.input.amount", "8", "route, the SELL amount"),
        ("origin.output.token", {"chainId": THERE, "address": VIA}, "chainId of route.origin.output"),
        ("origin.output.token", {"chainId": HERE, "address": OTHER}, "route.origin.output"),
        ("destination.output.token", {"chainId": 1, "address": DEST}, "chainId of route.destination.output"),
        ("destination.output.token", {"chainId": THERE, "address": OTHER}, "route.destination.output"),
        ("destination.input.token", {"chainId": THERE, "address": OTHER}, "route.destination.input"),
        ("destination.input.amount", str(ARRIVING + 1), "route.destination.input.amount"),
        ("bridge.contractParams.outputToken", OTHER, "outputToken"),
        ("bridge.contractParams.protocolSelector", "0xdeadbeef", "protocolSelector"),
        ("bridge.contractParams.scalingFactor", 1, "scalingFactor"),
        ("bridge.contractParams.protocolData", "0x", "protocolData"),
        ("bridge.contractParams.protocolData", to_hex(pack_terms(ACROSS)) + "00", "protocolData"),
        ("bridge.contractParams.protocolData", "0x" + "ff" * 160, "protocolData"),
    ],
)
def test_a_route_that_was_not_wished_is_refused(ask: Ask, at: str, value: Any, named: str) -> None:
    refused = ask("bridge", route=changed(at, value), wish=WISH)["refused"]
    assert named in refused
    assert refused.endswith("Nothing was signed.")


@pytest.mark.parametrize(
    ("lied", "named"),
    [
        (route(arriving=ARRIVING + 1), "route.destination.output.amount"),
        (route(AcrossTerms(BridgeFee(10_001, 0), 3_600, bytes(20), 0), arriving=1), "the bridge’s fee"),
        (route(AcrossTerms(FEE, 59, bytes(20), 0)), "seconds to fill"),
        (route(AcrossTerms(FEE, 21_601, bytes(20), 0)), "seconds to fill"),
        (route(AcrossTerms(FEE, 3_600, bytes(20), 3_600)), "seconds of exclusivity"),
        (route(CctpTerms(BridgeFee(0, 0), 2_000, 2**32), arriving=1), "protocolData"),
    ],
)
def test_terms_of_a_bridge_that_cost_too_much_are_refused(ask: Ask, lied: Any, named: str) -> None:
    assert named in ask("bridge", route=lied, wish=WISH)["refused"]


WRAPPED = "0x" + "7" * 40
NATIVE_WISH = WISH | {"destToken": NATIVE_PLACEHOLDER, "destDecimals": 6, "listedThere": [WRAPPED]}


def native_route(
    wrapped: str = WRAPPED, terms: BridgeTerms = ACROSS, chain_id: int = THERE
) -> dict[str, Any]:
    """A route to native tokens, which the bridge takes as their wrapped form."""
    found = route(terms)
    found["bridge"]["contractParams"]["outputToken"] = wrapped
    for end in found["destination"].values():
        end["token"] = {"chainId": chain_id, "address": NATIVE_PLACEHOLDER}
    return found


def test_native_tokens_come_as_the_wrapped_one_and_by_across_alone(ask: Ask) -> None:
    told = ask("bridge", route=native_route(), wish=NATIVE_WISH)
    assert told["signed"]["outputToken"] == WRAPPED
    for lied in (OTHER, NATIVE_PLACEHOLDER):
        assert "outputToken" in ask("bridge", route=native_route(lied), wish=NATIVE_WISH)["refused"]
    burnt = native_route(terms=CctpTerms(BridgeFee(0, 0), 2_000, 3))
    assert "for native tokens" in ask("bridge", route=burnt, wish=NATIVE_WISH)["refused"]


def test_the_wrapped_tokens_of_public_chains_are_those_of_the_package(ask: Ask) -> None:
    for chain_id in SPOKE_POOLS:
        wish = NATIVE_WISH | {"destChainId": chain_id}
        public = SHIPPED_CHAINS[chain_id].wrapped_native
        told = ask("bridge", route=native_route(public, chain_id=chain_id), wish=wish)
        assert told["signed"]["outputToken"] == public
        assert "refused" in ask("bridge", route=native_route(chain_id=chain_id), wish=wish)


def test_a_wrong_domain_of_a_public_chain_is_refused(ask: Ask) -> None:
    for chain_id, domain in CCTP_DOMAINS.items():
        for told, is_right in ((domain, True), (domain + 1, False)):
            lied = route(CctpTerms(BridgeFee(0, 0), 2_000, told), arriving=ENTERING)
            for end in lied["destination"].values():
                end["token"]["chainId"] = chain_id
            answer = ask("bridge", route=lied, wish=WISH | {"destChainId": chain_id})
            assert ("refused" not in answer) is is_right


def test_public_contracts_of_bridges_are_those_of_the_package(ask: Ask) -> None:
    for chain_id in {*SPOKE_POOLS, *CCTP_DOMAINS, HERE}:
        messenger = CCTP_MESSENGER if chain_id in CCTP_DOMAINS else None
        wanted = {"Across": SPOKE_POOLS.get(chain_id), "CCTP": messenger}
        for kind, public in wanted.items():
            for told in (public or OTHER, DEST):
                answer = ask("bridgeContract", chainId=chain_id, kind=kind, contract=told)
                assert ("refused" in answer) is (public is not None and told != public)
            zero = "0x" + "00" * 20
            assert "refused" in ask("bridgeContract", chainId=chain_id, kind=kind, contract=zero)
    getters = {"Across": "spokePool()", "CCTP": "tokenMessenger()"}
    for kind, name in getters.items():
        assert ask("bridgeGetter", kind=kind) == to_hex(selector(name))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    entering=st.integers(1, 2**128),
    ppm=st.integers(0, 9_000),
    fixed=st.integers(0, 2**64),
    scaling=st.integers(-12, 12),
)
def test_fees_and_arrivals_are_those_of_the_contract(
    ask: Ask, entering: int, ppm: int, fixed: int, scaling: int
) -> None:
    fee = BridgeFee(ppm, fixed)
    told = ask("bridgeAmounts", entering=str(entering), ppm=ppm, fixed=str(fixed), scaling=scaling)
    assert told == {"fee": str(fee_of(fee, entering)), "arriving": str(output_of(fee, scaling, entering))}


def test_addresses_are_compared_in_any_spelling(ask: Ask) -> None:
    spelt = to_checksum(bytes.fromhex(DEST[2:]))
    assert "refused" not in ask("bridge", route=route(), wish=WISH | {"destToken": spelt})
