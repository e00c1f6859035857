"""agents.md says what is true: settings load, messages are those that are read, the strategy trades."""

import re
from pathlib import Path

import msgspec
import pytest

from cambist.codecs.contracts.abi import address_word
from cambist.codecs.contracts.calldata import transfer
from cambist.codecs.messages import agent_messages
from cambist.codecs.messages.resource_messages import DocumentMeta
from cambist.config.sections.agent import AgentSettings
from cambist.config.settings import parse_settings
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.deploy.address_book import AddressBook
from cambist.engine.chain.deploy.deploy import create
from cambist.engine.chain.transact import transact
from cambist.engine.roles.agent.orders import open_orders
from cambist.engine.trade.delta.bids.agent_caller import caller_of
from cambist.engine.trade.routing.served import served_chains
from support.makers.agent_role import NAME, own_module, running_agent
from support.venue.venue_role import KEYS, STRANGER, Devnet

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "agents.md").read_text(encoding="utf-8")
ONE, USDC = 10**18, 10**6
DESK_SECRET = "d5" * 32


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_sample_settings_load(tmp_path: Path) -> None:
    environ = {"VENUE_SECRET": "x", "ALPHA_SECRET": "y"}
    settings = parse_settings(blocks("toml")[0], environ, tmp_path)
    assert settings.agent
    makers = settings.agent.makers
    assert settings.agent == AgentSettings(makers=makers)
    served = served_chains(settings, makers, AddressBook(DocumentMeta("", ""), {}), field="agent.makers")
    assert served.keys() == {1}
    own = parse_settings("[agent]\n" + blocks("toml")[1], {}, tmp_path)
    assert own.agent
    assert own.agent.options.keys() == {"my_desk:MyDesk"}


@pytest.mark.parametrize("number", range(3))
def test_each_message_is_one_that_is_read_whole(number: int) -> None:
    decode = (
        agent_messages.decode_solve_request,
        agent_messages.decode_solve_response,
        agent_messages.decode_notify_request,
    )[number]
    shown = msgspec.json.decode(blocks("json")[number])
    read = decode(msgspec.json.encode(shown))
    written = msgspec.json.decode(msgspec.json.encode(read))
    if isinstance(read, agent_messages.NotifyRequest):
        written["notices"] = [
            {key: value for key, value in entry.items() if value is not None} for entry in written["notices"]
        ]
    assert written == shown
    if isinstance(read, agent_messages.SolveRequest):
        assert len(open_orders(read)) == 1


def test_every_notice_is_named() -> None:
    named = PAGE[PAGE.index("`notice` is one of") :].partition("\n\n")[0]
    assert re.findall(r"`([a-zA-Z]+)`", named)[1:] == [notice.value for notice in agent_messages.Notice]


async def test_a_strategy_of_ten_lines_bids_what_makers_sign(tmp_path: Path) -> None:
    strategy = blocks("python")[0]
    assert len(strategy.splitlines()) <= 10
    name = f"{own_module(tmp_path, strategy)}:TenLines"

    async def with_it(_: Devnet) -> str:
        return f'strategies = ["{name}"]\n'

    async with running_agent(tmp_path, more=with_it) as agent:
        (bid,) = await agent.solve(await agent.sells(ONE, "WETH", "USDC", least=2_400 * USDC))
        (settled,) = await agent.settle(bid)
        assert settled.received >= int(bid.parts[0].promised_amount) > 2_400 * USDC
        assert await agent.solve(await agent.sells(ONE, "WETH", "USDC", least=9_000 * USDC)) == ()


async def test_the_strategy_of_ones_own_trades(tmp_path: Path) -> None:
    name = f"{own_module(tmp_path, blocks('python')[1])}:MyDesk"
    key_file = tmp_path / "desk.key"
    key_file.write_text(DESK_SECRET, encoding="utf-8")
    key_file.chmod(0o600)

    async def with_desk(devnet: Devnet) -> str:
        caller = caller_of(devnet.at("delta"), NAME)
        signer = SigningKey(bytes.fromhex(DESK_SECRET)).address
        words = map(address_word, (caller, signer, KEYS[0].address))
        desk = await create(devnet.chain, KEYS[0], "AgentDesk", b"".join(words))
        await transact(devnet.chain, STRANGER, devnet.at("USDC"), transfer(desk, 10_000 * USDC))
        settings = blocks("toml")[1].replace("my_desk:MyDesk", name)
        for said, here in (
            (r"desk = .*", f'desk = "{to_hex(desk)}"'),
            (r"buys = .*", f'buys = "{devnet.text("WETH")}"'),
            (r"pays = .*", f'pays = "{devnet.text("USDC")}"'),
            (r"price = .*", "price = [2510, 1000000000000]"),
            (r"key = .*", f'key = "file:{key_file}"'),
        ):
            settings, found = re.subn(said, here, settings)
            assert found == 1
        return settings

    async with running_agent(tmp_path, more=with_desk) as agent:
        sale = await agent.sells(ONE, "WETH", "USDC", least=2_400 * USDC)
        own, shipped = await agent.solve(sale)
        assert int(own.parts[0].promised_amount) > int(shipped.parts[0].promised_amount)
        (settled,) = await agent.settle(own)
        assert settled.received == 2_510 * USDC
        assert await agent.solve(await agent.sells(ONE, "WETH", "USDC", least=2_511 * USDC)) == ()
