"""From settings to served chains: addresses of the book, and everything wrong said by the setting's name."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.codecs.messages.resource_messages import DocumentMeta
from cambist.config.errors import ConfigError
from cambist.config.settings import Settings, parse_settings
from cambist.crypto.addresses import parse_address
from cambist.engine.chain.deploy.address_book import AddressBook, DeployedChain
from cambist.engine.host.process.clock import WallClock
from cambist.engine.roles.venue.app import opened_venue
from cambist.engine.trade.routing.served import ConfiguredChain, served_chains
from support.venue.quiet_venue import CHAIN_ID, DELTA, EXECUTOR, RFQ, ROUTER, USDC, VAULT, WETH

NODE = '\n[chains.31337.node]\nurls = ["http://127.0.0.1:9"]\n'
ADDRESSES = "".join(
    f'{name} = "{address}"\n'
    for name, address in (
        ("router", ROUTER), ("delta_contract", DELTA), ("rfq_contract", RFQ), ("executor", EXECUTOR),
    )
)  # fmt: skip
TOKENS = (
    f'[[tokens]]\nchain_id = {CHAIN_ID}\naddress = "{WETH}"\nsymbol = "WETH"\ndecimals = 18\n'
    f'[[tokens]]\nchain_id = {CHAIN_ID}\naddress = "{USDC}"\nsymbol = "USDC"\ndecimals = 6\n'
    "stable_usd = true\n"
)
CHAIN = f'[chains.{CHAIN_ID}]\nname = "devnet"\nmarket = true\ndelta = true\n'
NO_BOOK = AddressBook(DocumentMeta("", ""), {})
BOOK = AddressBook(
    DocumentMeta("", ""),
    {
        str(CHAIN_ID): msgspec.convert(
            {
                "name": "devnet", "augustusV6_2": VAULT, "delta": DELTA, "augustusRFQ": RFQ,
                "executor": EXECUTOR, "feeClaimer": VAULT, "wrappedNative": WETH,
                "spokePool": RFQ, "tokenMessenger": DELTA, "messageTransmitter": ROUTER,
            },
            DeployedChain,
        )
    },
)  # fmt: skip


def settings_of(text: str) -> Settings:
    return parse_settings(text, {"ROUTE_SEAL": "the seal of all routes", "SHORT": "short"}, Path())


def served(text: str, book: AddressBook = NO_BOOK, **reachable: Any) -> dict[int, ConfiguredChain]:
    settings = settings_of(text)
    assert settings.venue
    return served_chains(settings, settings.venue.makers, book, **reachable)


def test_a_chain_is_served_when_it_has_a_role_and_a_node() -> None:
    found = served(CHAIN + ADDRESSES + NODE + TOKENS + "[venue]\n")
    assert found.keys() == {CHAIN_ID}  # none of the shipped chains: they have no node
    one = found[CHAIN_ID]
    assert one.addresses["router"] == parse_address(ROUTER)
    assert one.addresses["fee_vault"] == b""
    assert one.decimals == {parse_address(WETH): 18, parse_address(USDC): 6}
    assert one.stables == {parse_address(USDC)}


def test_what_the_settings_lack_is_in_contracts_json_and_what_they_say_counts() -> None:
    one = served(CHAIN + f'router = "{ROUTER}"\n' + NODE + TOKENS + "[venue]\n", BOOK)[CHAIN_ID]
    assert one.settings.router == ROUTER
    assert one.settings.executor == EXECUTOR
    assert one.settings.fee_vault == VAULT
    assert one.tokens.wrapped_native == parse_address(WETH)
    bridges = one.settings.spoke_pool, one.settings.token_messenger, one.settings.message_transmitter
    assert bridges == (RFQ, DELTA, ROUTER)
    assert [token.symbol for token in one.tokens.by_address.values()] == ["WETH", "USDC", "ETH"]


@pytest.mark.parametrize(
    ("text", "field", "says"),
    [
        ("[venue]\n", "chains", "no chain has `market` or `delta` and a node"),
        (CHAIN + NODE + TOKENS + "[venue]\n", f"chains.{CHAIN_ID}.rfq_contract", "contracts.json"),
        (CHAIN + ADDRESSES.replace("router", "fee_vault") + NODE + TOKENS + "[venue]\n",
         f"chains.{CHAIN_ID}.router", "is not set"),
        (CHAIN + ADDRESSES.replace("delta_contract", "fee_vault") + NODE + TOKENS + "[venue]\n",
         f"chains.{CHAIN_ID}.delta_contract", "is not set"),
        (CHAIN + ADDRESSES + NODE + "[venue]\n", "tokens", "none is listed"),
        (CHAIN + ADDRESSES + NODE + TOKENS + '[venue.makers.m.chains.5]\nurl = "http://m"\n',
         "venue.makers.m.chains.5", "unknown chain 5"),
        (CHAIN + ADDRESSES + NODE + TOKENS + '[venue.makers.m.chains.1]\nurl = "http://m"\n',
         "venue.makers.m.chains.1", "chains.1.node.urls"),
        (CHAIN.replace("true", "false") + ADDRESSES + NODE + TOKENS
         + f'[venue.makers.m.chains.{CHAIN_ID}]\nurl = "http://m"\n',
         f"venue.makers.m.chains.{CHAIN_ID}", "neither `market` nor `delta`"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_by_name(text: str, field: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        served(text)
    assert caught.value.key == field
    assert says in caught.value.detail


SEAL = 'route_seal_keys = ["env:ROUTE_SEAL"]\n'


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (SEAL + CHAIN + ADDRESSES + NODE + TOKENS, "venue"),
        (CHAIN + ADDRESSES + NODE + TOKENS + "[venue]\n", "route_seal_keys"),
        (SEAL.replace("ROUTE_SEAL", "SHORT") + CHAIN + ADDRESSES + NODE + TOKENS + "[venue]\n",
         "route_seal_keys[0]"),
        (SEAL + CHAIN + ADDRESSES + NODE + TOKENS + "[venue]\n[server]\nprocesses = 2\n", "server.processes"),
        (SEAL + CHAIN + ADDRESSES.replace(ROUTER, "0xAbcdefABCDEF0000000000000000000000000001")
         + NODE + TOKENS + "[venue]\n", f"chains.{CHAIN_ID}.router"),
        (SEAL + CHAIN + ADDRESSES + NODE.replace("http://127.0.0.1:9", "env:ABSENT") + TOKENS + "[venue]\n",
         f"chains.{CHAIN_ID}.node.urls[0]"),
        (SEAL + CHAIN + ADDRESSES + NODE + TOKENS
         + '[venue.makers.m]\ncredentials = { domain = "v", access_key = "k", secret = "env:SHORT", '
         + 'secret_encoding = "hex" }\n'
         + f'[venue.makers.m.chains.{CHAIN_ID}]\nurl = "http://m"\n', "venue.makers.m.credentials"),
    ],
)  # fmt: skip
async def test_a_venue_does_not_open_with_wrong_settings(tmp_path: Path, text: str, field: str) -> None:
    settings = settings_of(f'state_dir = "{tmp_path}"\n{text}')
    with pytest.raises(ConfigError) as caught:
        async with opened_venue(
            settings, environ={}, folder=tmp_path, clock=WallClock(), store_in_process=True
        ):
            pass
    assert caught.value.key == field
    assert "short" not in caught.value.detail
