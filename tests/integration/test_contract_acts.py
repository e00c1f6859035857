"""`cambist contracts pause | roles | revoke | ...` against a node, as docs/guides/incidents.md has it."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from cambist.codecs.contracts import calldata, delta_calldata, owner_calldata
from cambist.codecs.contracts.abi import address_word, selector, uint_word
from cambist.codecs.contracts.delta_calldata import Execution
from cambist.codecs.eip712_orders.delta import ORDER, SAME_CHAIN, DeltaOrder, delta_domain_separator
from cambist.config.chains import ChainSettings
from cambist.config.errors import Reverted
from cambist.config.sections.nodes import NodeSettings
from cambist.crypto.addresses import to_checksum
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import to_65
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.nodes.rpc import RpcChain
from cambist.engine.chain.port import EthCall
from cambist.engine.chain.transact import transact
from support.chain.devnet import KEYS, devnet_process
from support.client.commands import invoked

USER, OWNER, RELAYER, PAUSER, SAFE, THIEF = (KEYS[number] for number in (0, 4, 5, 6, 7, 8))
ONE = 10**18
CHAIN_ID = 31_337


class Incident:
    """Contracts of OWNER's on a devnet, open, with a relayer whose key has leaked."""

    def __init__(self, folder: Path, url: str, tokens: dict[str, bytes], chain: RpcChain) -> None:
        self.folder, self.url, self.tokens, self.chain = folder, url, tokens, chain
        book = json.loads((folder / "contracts.json").read_text())["chains"][str(CHAIN_ID)]
        self.delta, self.router = (bytes.fromhex(book[name][2:]) for name in ("delta", "augustusV6_2"))
        self.sales = 0

    async def does(self, *arguments: str, key: SigningKey | None = None, status: int = 0) -> str:
        """Text of a command on both outputs."""
        done = await ran(self.folder, self.url, *arguments, key=key)
        assert done.exit_code == status, done.output
        return done.output

    async def told(self, *arguments: str, key: SigningKey | None = None) -> Any:
        """JSON output of a command."""
        return json.loads(await self.does(*arguments, "--json", key=key))

    async def stolen(self) -> int:
        """Amount that the thief gets by an order for a tenth of a WETH whose owner accepts any price."""
        before = await self.of(THIEF.address)
        self.sales += 1
        terms = ChainSettings(name="")
        separator = delta_domain_separator(
            terms.delta_domain_name, terms.delta_domain_version, CHAIN_ID, self.delta
        )
        header = await self.chain.block()
        assert header is not None
        order = DeltaOrder(
            owner=USER.address,
            beneficiary=USER.address,
            src_token=self.tokens["WETH"],
            dest_token=self.tokens["USDC"],
            src_amount=ONE // 10,
            dest_amount=0,
            expected_amount=0,
            deadline=header.time_s + 10_000,
            kind=0,
            nonce=self.sales,
            partner_and_fee=0,
            permit=b"",
            metadata=b"",
            bridge=SAME_CHAIN,
        )
        signature = to_65(*USER.sign(ORDER.compiled.digest_for(separator)(order)))
        execution = Execution(0, 0, (), receiver=THIEF.address)
        data = delta_calldata.settle(order, signature, order.src_amount, execution)
        await transact(self.chain, RELAYER, self.delta, data)
        return await self.of(THIEF.address) - before

    async def of(self, account: bytes) -> int:
        """WETH of an account."""
        answer = await self.chain.call(EthCall(self.tokens["WETH"], calldata.balance_of(account)))
        return int.from_bytes(answer, "big")


async def ran(folder: Path, url: str, *arguments: str, key: SigningKey | None = None) -> Result:
    """A command of `cambist contracts`, in a thread of this process."""
    environ = {"CAMBIST__STATE_DIR": str(folder)}
    with_key = [] if key is None else ["--key", "env:ITS_KEY"]
    if key is not None:
        environ["ITS_KEY"] = key.secret32().hex()
    line = ["contracts", *arguments, "--chain", str(CHAIN_ID), "--node", url, *with_key]
    return await invoked(line, environ)


@pytest.fixture
async def incident(tmp_path: Path) -> AsyncIterator[Incident]:
    """The user allows Delta everything."""
    with devnet_process(tmp_path / "devnet", "--chain", str(CHAIN_ID)) as devnet:
        (told,) = devnet.told["chains"]
        listed = told["contracts"]["tokens"]
        tokens = {name: bytes.fromhex(listed[name]["address"][2:]) for name in ("WETH", "USDC")}
        roles = "--relayer", text(RELAYER), "--pauser", text(PAUSER), "--protocol", text(SAFE)
        weth = to_checksum(tokens["WETH"])
        asked = "deploy", "--open", "--yes", "--cap", f"{weth}=5", *roles
        done = await ran(tmp_path, devnet.url(), *asked, key=OWNER)
        assert done.exit_code == 0, done.output
        assert f"{text(OWNER)} owns the contracts: `cambist contracts handover`" in done.stdout
        settings = NodeSettings(urls=(devnet.url(),))
        async with RpcChain.open(CHAIN_ID, settings, known_errors()) as chain:
            found = Incident(tmp_path, devnet.url(), tokens, chain)
            approval = calldata.approve(found.delta, 2**256 - 1)
            await transact(chain, USER, tokens["WETH"], approval)
            yield found


async def owes(incident: Incident, to: SigningKey, amount: int) -> bytes:
    """The vault, which owes somebody WETH from now on."""
    book = json.loads((incident.folder / "contracts.json").read_text())["chains"][str(CHAIN_ID)]
    vault, weth = bytes.fromhex(book["feeClaimer"][2:]), incident.tokens["WETH"]
    collector = owner_calldata.set_collector(USER.address, allowed=True)
    await transact(incident.chain, OWNER, vault, collector)
    await transact(incident.chain, USER, weth, calldata.transfer(vault, amount))
    credit = selector("credit(address,address,uint256)") + address_word(to.address) + address_word(weth)
    await transact(incident.chain, USER, vault, credit + uint_word(amount))
    return vault


def text(key: SigningKey) -> str:
    return to_checksum(key.address)


async def test_a_relayers_key_has_leaked(incident: Incident) -> None:
    """Stopped by the pauser, revoked by the owner, bounded anew, let go on: the thief gets nothing more."""
    before = await incident.of(THIEF.address)
    assert await incident.stolen() == ONE // 10
    stopped = await incident.does("pause", "--yes", key=PAUSER)
    assert stopped.count("pause() is mined: 0x") == 2
    with pytest.raises(Reverted, match="Paused"):
        await incident.stolen()
    told = await incident.told("roles")
    assert told["Delta"]["paused"] is told["Router"]["paused"] is True
    assert told["Delta"]["relayers"] == [text(RELAYER)]
    weth = to_checksum(incident.tokens["WETH"])
    assert told["Delta"]["caps"] == {weth: {"cap": str(5 * ONE), "given": str(ONE // 10)}}
    assert f"relayer         {text(RELAYER)}" in await incident.does("roles")
    gone = await incident.does("revoke", text(RELAYER), "--yes", key=OWNER)
    assert f"setRelayer({text(RELAYER)}, false) is mined" in gone
    assert "nothing is to be done" in await incident.does("revoke", text(RELAYER), key=OWNER)
    await incident.does("cap", f"{weth}=1.5", "--yes", key=OWNER)
    await incident.does("unpause", "--yes", key=OWNER)
    told = await incident.told("roles")
    assert (told["Delta"]["relayers"], told["Delta"]["paused"]) == ([], False)
    assert {told[name]["caps"][weth]["cap"] for name in ("Delta", "Router")} == {str(15 * ONE // 10)}
    with pytest.raises(Reverted, match="NotRelayer"):
        await incident.stolen()
    assert await incident.of(THIEF.address) == before + ONE // 10


async def test_a_multisig_is_given_calls_that_would_succeed(incident: Incident) -> None:
    """Without a key: the owner sends the printed calls unchanged."""
    calls = (await incident.told("revoke", text(PAUSER)))["calls"]
    assert [call["contract"] for call in calls] == ["Delta", "Router"]
    assert {tuple(call["from"]) for call in calls} == {(text(OWNER),)}
    said = await incident.does("revoke", text(PAUSER))
    assert "nothing was sent: each call was tried" in said
    for call in calls:
        assert call["data"] in said
        to, data = (bytes.fromhex(call[name][2:]) for name in ("to", "data"))
        await transact(incident.chain, OWNER, to, data)
    assert (await incident.told("revoke", text(PAUSER)))["calls"] == []
    assert "is for its pauser" in await incident.does("pause", key=PAUSER, status=1)


async def test_a_dry_run_with_a_key_sends_nothing_and_prints_the_calls(incident: Incident) -> None:
    weth = to_checksum(incident.tokens["WETH"])
    vault = await owes(incident, SAFE, 77)
    before = [await incident.chain.nonce(key.address) for key in (OWNER, SAFE)]
    for key, *act in (
        (OWNER, "pause"),
        (OWNER, "cap", f"{weth}=1"),
        (OWNER, "revoke", text(RELAYER)),
        (OWNER, "handover", text(SAFE)),
        (SAFE, "claim"),
    ):
        calls = (await incident.told(*act, "--dry-run", key=key))["calls"]
        assert calls, act
        said = await incident.does(*act, "--dry-run", key=key)
        assert "nothing was sent" in said
        assert all(call["to"] in said and call["data"] in said for call in calls)
    assert [await incident.chain.nonce(key.address) for key in (OWNER, SAFE)] == before
    assert await incident.of(vault) == 77
    await incident.does("pause", "--yes", key=OWNER)
    assert "nothing was sent" in await incident.does("unpause", "--dry-run", key=OWNER)
    assert (await incident.told("roles"))["Delta"]["paused"] is True


async def test_no_key_does_what_is_anothers(incident: Incident) -> None:
    """The error names the account with the right before any transaction is sent."""
    weth = to_checksum(incident.tokens["WETH"])
    nonce = await incident.chain.nonce(THIEF.address)
    for act in (
        ("pause",),
        ("unpause",),
        ("cap", f"{weth}=max"),
        ("revoke", text(RELAYER)),
        ("handover", text(SAFE)),
    ):
        said = await incident.does(*act, "--yes", key=THIEF, status=1)
        assert f"{text(OWNER)}" in said
        assert f"not {text(THIEF)}" in said
    assert await incident.chain.nonce(THIEF.address) == nonce
    assert "owner of Delta, Router, RfqExecutor, FeeVault" in await incident.does(
        "revoke", text(OWNER), key=OWNER, status=1
    )


async def test_ownership_goes_to_a_multisig(incident: Incident) -> None:
    """Proposed by the deployment or later; until it is accepted, the deployer owns all, then nothing."""
    said = await incident.does("deploy", "--open", "--yes", "--owner", text(SAFE), key=OWNER)
    assert f"{text(OWNER)} owns the contracts until {text(SAFE)} accepts it" in said
    told = await incident.told("roles")
    assert {told[name]["proposed owner"] for name in told} == {text(SAFE)}
    assert "nothing is to be done" in await incident.does("handover", text(SAFE), key=OWNER)
    calls = (await incident.told("handover", text(SAFE), "--accept"))["calls"]
    assert {tuple(call["from"]) for call in calls} == {(text(SAFE),)}
    await incident.does("handover", text(SAFE), "--accept", "--yes", key=SAFE)
    told = await incident.told("roles")
    assert {told[name]["owner"] for name in told} == {text(SAFE)}
    assert not any("proposed owner" in told[name] for name in told)
    assert {told[name]["protocol"] for name in ("Delta", "Router")} == {text(SAFE)}
    assert text(OWNER) not in json.dumps(told)
    assert f"not {text(OWNER)}" in await incident.does("unpause", key=OWNER, status=1)
    again = await incident.does("deploy", "--open", "--yes", "--owner", text(SAFE), key=OWNER)
    assert "owns the contracts" not in again


async def test_a_deployer_that_held_every_role_keeps_none(incident: Incident) -> None:
    """The handover revokes the owner's own roles first; a multisig receives the same calls by a dry run."""
    own = "--relayer", text(OWNER), "--pauser", text(OWNER)
    said = await incident.does("deploy", "--open", "--yes", *own, "--owner", text(SAFE), key=OWNER, status=2)
    assert f"--relayer, --pauser: {text(OWNER)} deploys, and keeps no role after --owner accepts" in said
    await incident.does("deploy", "--open", "--yes", *own, key=OWNER)
    book = json.loads((incident.folder / "contracts.json").read_text())["chains"][str(CHAIN_ID)]
    for name, data in (
        ("executor", owner_calldata.set_caller(OWNER.address, allowed=True)),
        ("feeClaimer", owner_calldata.set_collector(OWNER.address, allowed=True)),
    ):
        await transact(incident.chain, OWNER, bytes.fromhex(book[name][2:]), data)
    told = await incident.told("roles")
    assert json.dumps(told).count(text(OWNER)) == 4 + 2 * 2 + 3  # owner; pauser and protocol; accounts
    calls = (await incident.told("handover", text(SAFE)))["calls"]
    assert len(calls) == 2 * 2 + 3 + 4
    for call in calls:
        to, data = (bytes.fromhex(call[name][2:]) for name in ("to", "data"))
        await transact(incident.chain, OWNER, to, data)
    assert "nothing is to be done" in await incident.does("handover", text(SAFE), key=OWNER)
    await incident.does("handover", text(SAFE), "--accept", "--yes", key=SAFE)
    told = await incident.told("roles")
    assert text(OWNER) not in json.dumps(told)
    assert {told[name]["protocol"] for name in ("Delta", "Router")} == {text(SAFE)}
    assert "pauser" not in told["Delta"]


async def test_a_handover_to_another_account_corrects_a_mistaken_one(incident: Incident) -> None:
    """The mistaken account has accepted nothing, and receives no fees any more."""
    await incident.does("revoke", text(SAFE), "--yes", key=OWNER)
    await incident.does("handover", text(THIEF), "--yes", key=OWNER)
    assert (await incident.told("roles"))["Delta"]["protocol"] == text(THIEF)
    await incident.does("handover", text(SAFE), "--yes", key=OWNER)
    told = await incident.told("roles")
    assert text(THIEF) not in json.dumps(told)
    assert {told[name]["protocol"] for name in ("Delta", "Router")} == {text(SAFE)}


async def test_the_protocols_fees_of_a_revoked_account_go_to_the_owner(incident: Incident) -> None:
    """The account received them on both contracts; afterwards no role names the account."""
    await incident.does("revoke", text(SAFE), "--yes", key=OWNER)
    told = await incident.told("roles")
    assert text(SAFE) not in json.dumps(told)
    assert {told[name]["protocol"] for name in ("Delta", "Router")} == {text(OWNER)}


async def test_fees_are_claimed(incident: Incident) -> None:
    """The command finds tokens by the vault's logs or by name; other accounts have no claims."""
    assert "nothing is to be done" in await incident.does("claim", "--account", text(SAFE))
    assert "one of them has to name the account of the fees" in await incident.does("claim", status=2)
    await owes(incident, SAFE, 77)
    weth = incident.tokens["WETH"]
    said = await incident.does("claim", "--account", text(SAFE), "--receiver", text(THIEF))
    assert f"owed        {to_checksum(weth)}  77 raw units" in said
    before = await incident.of(THIEF.address)
    await incident.does("claim", "--receiver", text(THIEF), "--yes", key=SAFE)
    assert await incident.of(THIEF.address) == before + 77
    assert "nothing is to be done" in await incident.does("claim", "--token", to_checksum(weth), key=SAFE)


async def test_contracts_that_nobody_deployed(tmp_path: Path) -> None:
    done = await ran(tmp_path, "http://127.0.0.1:9", "pause")
    assert done.exit_code == 1
    assert "has no contracts of chain 31337: `cambist contracts deploy` writes them" in done.output
