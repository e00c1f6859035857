"""Calldata of Delta, Router, RfqExecutor and FeeVault: selectors of their ABI, encoded as eth-abi does."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cambist.codecs.contracts import calldata, delta_calldata, owner_calldata, router_calldata
from cambist.codecs.contracts.abi import selector
from cambist.codecs.contracts.calldata import OrderInfo
from cambist.codecs.contracts.delta_calldata import CrossedOrder, Execution, SettlementStep, rfq_step
from cambist.codecs.contracts.router_calldata import Hop, RouterSwap
from cambist.codecs.eip712_orders.delta import ORDER, TWAP_BUY_ORDER, TWAP_ORDER
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER
from cambist.engine.chain.artifacts import Entry, artifact
from support.contracts.plain_abi import plain_abi
from support.oracles import Oracle
from support.typed_data import orders

CONTRACTS = ("Rfq", "Delta", "RfqExecutor", "FeeVault", "Router")
address = st.binary(min_size=20, max_size=20)
addresses = st.lists(address, max_size=4)
digest = st.binary(min_size=32, max_size=32)
uint256 = st.integers(0, 2**256 - 1)
numbers = st.lists(uint256, max_size=4)
flag = st.booleans()
signature = st.binary(max_size=100)
infos = st.lists(
    st.builds(
        OrderInfo, orders(RFQ_ORDER), signature, uint256, st.binary(max_size=70), st.binary(max_size=40)
    ),
    max_size=2,
).map(tuple)
executions = st.builds(
    Execution,
    uint256,
    uint256,
    st.lists(st.builds(SettlementStep, address, uint256, st.binary(max_size=120)), max_size=3).map(tuple),
    addresses.map(tuple),
    digest,
    address,
)
crossings = st.lists(
    st.builds(CrossedOrder, orders(ORDER), signature, uint256, executions, uint256, uint256), max_size=3
).map(tuple)
swaps = st.builds(
    RouterSwap,
    address,
    address,
    uint256,
    uint256,
    uint256,
    address,
    uint256,
    uint256,
    st.binary(max_size=256),
    st.lists(st.builds(Hop, taker_amount=uint256, maker_amount=uint256, orders=infos), max_size=3).map(tuple),
)

Strategies = list[st.SearchStrategy[Any]]
CALLS: list[tuple[str, str, Callable[..., bytes], Strategies]] = [
    ("Delta", "settle", delta_calldata.settle, [orders(ORDER), signature, uint256, executions]),
    ("Delta", "settleCrossed", delta_calldata.settle_crossed, [crossings]),
    ("Delta", "settleTwap", delta_calldata.settle_twap, [orders(TWAP_ORDER), signature, executions]),
    ("Delta", "settleTwapBuy", delta_calldata.settle_twap_buy,
     [orders(TWAP_BUY_ORDER), signature, executions]),
    ("Delta", "invalidateNonces", delta_calldata.invalidate_nonces, [numbers]),
    ("Delta", "orderState", delta_calldata.order_state, [address, uint256, digest]),
    ("Delta", "setPreSignature", lambda one, yes: delta_calldata.set_pre_signature(one, is_signed=yes),
     [digest, flag]),
    ("Delta", "isPreSigned", delta_calldata.is_pre_signed, [address, digest]),
    ("Delta", "depositNativeAndPreSign", delta_calldata.deposit_native_and_pre_sign, [digest]),
    ("Delta", "withdrawNative", delta_calldata.withdraw_native, [uint256]),
    ("Delta", "withdrawTo", delta_calldata.withdraw_to, [uint256, address]),
    ("Delta", "deposits", delta_calldata.deposits, [address]),
    ("Delta", "cancelAndWithdraw", lambda order, _: delta_calldata.cancel_and_withdraw(order),
     [orders(ORDER), st.just(value=False)]),
    ("Delta", "cancelTWAPAndWithdraw", delta_calldata.cancel_and_withdraw, [orders(TWAP_ORDER)]),
    ("Delta", "cancelTWAPBuyAndWithdraw", delta_calldata.cancel_and_withdraw, [orders(TWAP_BUY_ORDER)]),
    ("Delta", "createAgentCaller", delta_calldata.create_agent_caller, [digest]),
    ("Delta", "agentCaller", delta_calldata.agent_caller, [digest]),
    ("Delta", "setPaused", lambda paused: owner_calldata.set_paused(paused=paused), [flag]),
    ("Delta", "setCap", owner_calldata.set_cap, [address, uint256]),
    ("Delta", "setPauser", owner_calldata.set_pauser, [address]),
    ("Delta", "pause", lambda: owner_calldata.PAUSE, []),
    ("Delta", "pauser", lambda: owner_calldata.PAUSER, []),
    ("Delta", "givenOf", owner_calldata.given_of, [address]),
    ("Delta", "setRelayer", lambda who, may: owner_calldata.set_relayer(who, allowed=may), [address, flag]),
    ("Delta", "proposeOwner", owner_calldata.propose_owner, [address]),
    ("Delta", "acceptOwner", lambda: owner_calldata.ACCEPT_OWNER, []),
    ("Delta", "isPaused", lambda: owner_calldata.IS_PAUSED, []),
    ("Delta", "capOf", owner_calldata.cap_of, [address]),
    ("Delta", "isRelayer", owner_calldata.is_relayer, [address]),
    ("Delta", "owner", lambda: owner_calldata.OWNER, []),
    ("RfqExecutor", "setCaller", lambda who, may: owner_calldata.set_caller(who, allowed=may),
     [address, flag]),
    ("FeeVault", "setCollector", lambda who, may: owner_calldata.set_collector(who, allowed=may),
     [address, flag]),
    ("FeeVault", "claim", router_calldata.claim, [addresses, address]),
    ("FeeVault", "owed", router_calldata.owed, [address, address]),
    ("Router", "swapExactIn", router_calldata.swap_exact_in, [swaps]),
    ("Router", "swapExactOut", router_calldata.swap_exact_out, [swaps]),
]  # fmt: skip


def function_of(contract: str, name: str) -> Entry:
    (entry,) = (entry for entry in artifact(contract).abi if (entry.type, entry.name) == ("function", name))
    return entry


def oracle_value(value: Any) -> Any:
    """As the oracle's JSON has it: structs are lists of their members."""
    if isinstance(value, msgspec.Struct):
        return list(map(oracle_value, msgspec.structs.astuple(value)))
    if isinstance(value, list | tuple):
        return list(map(oracle_value, value))
    if isinstance(value, bool):
        return value
    return f"hex:{value.hex()}" if isinstance(value, bytes) else f"int:{value}"


@pytest.mark.parametrize(
    ("contract", "name", "encode", "strategies"), CALLS, ids=[f"{call[0]}.{call[1]}" for call in CALLS]
)
@settings(max_examples=10)
@given(data=st.data())
def test_a_call_is_what_the_contracts_abi_and_the_specification_say(
    contract: str, name: str, encode: Callable[..., bytes], strategies: Strategies, data: st.DataObject
) -> None:
    entry = function_of(contract, name)
    arguments = [data.draw(strategy) for strategy in strategies]
    types = [parameter.canonical() for parameter in entry.inputs]
    assert encode(*arguments) == selector(entry.signature()) + plain_abi(types, arguments)


@settings(max_examples=10)
@given(infos, uint256, uint256, address)
def test_an_rfq_step_is_what_the_specification_says(
    some: tuple[OrderInfo, ...], taker_amount: int, maker_amount: int, receiver: bytes
) -> None:
    step = rfq_step(b"\x11" * 20, some, taker_amount, maker_amount, receiver)
    batch = function_of("Rfq", "batchFillOrderWithTarget").inputs[0].canonical()
    types = [batch, "uint256", "uint256", "address"]
    assert step == SettlementStep(
        b"\x11" * 20, 0, plain_abi(types, [some, taker_amount, maker_amount, receiver])
    )


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("contract", "name", "encode", "strategies"), CALLS, ids=[f"{call[0]}.{call[1]}" for call in CALLS]
)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_call_is_what_the_contracts_abi_and_eth_abi_say(
    eth_account: Oracle,
    contract: str,
    name: str,
    encode: Callable[..., bytes],
    strategies: Strategies,
    data: st.DataObject,
) -> None:
    entry = function_of(contract, name)
    arguments = [data.draw(strategy) for strategy in strategies]
    types = [parameter.canonical() for parameter in entry.inputs]
    encoded = eth_account.ask(ask="abi", types=types, values=oracle_value(arguments))["encoded"]
    assert encode(*arguments).hex() == selector(entry.signature()).hex() + encoded


@pytest.mark.oracle
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(infos, uint256, uint256, address)
def test_an_rfq_step_is_what_the_executor_decodes(
    eth_account: Oracle, some: tuple[OrderInfo, ...], taker_amount: int, maker_amount: int, receiver: bytes
) -> None:
    rfq = b"\x11" * 20
    step = rfq_step(rfq, some, taker_amount, maker_amount, receiver)
    batch = function_of("Rfq", "batchFillOrderWithTarget").inputs[0].canonical()
    values = oracle_value([some, taker_amount, maker_amount, receiver])
    answer = eth_account.ask(ask="abi", types=[batch, "uint256", "uint256", "address"], values=values)
    assert (step.target, step.gas, step.data.hex()) == (rfq, 0, answer["encoded"])


ERC20 = {"BALANCE_OF", "ALLOWANCE", "APPROVE", "TRANSFER", "TRANSFER_FROM", "DECIMALS", "SYMBOL", "NAME",
         "TOTAL_SUPPLY"}  # fmt: skip


@pytest.mark.parametrize("module", [calldata, delta_calldata, owner_calldata, router_calldata])
def test_each_selector_is_a_function_of_a_contract(module: ModuleType) -> None:
    known = {found for contract in CONTRACTS for found in artifact(contract).selectors().values()}
    ours = {
        name: value
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, bytes) and len(value) == 4
    }
    assert {name for name, value in ours.items() if value not in known} == (
        ERC20 if module is calldata else set()
    )
