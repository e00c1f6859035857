"""`cambist up`: two chains with bridges, three makers with moving prices, two agents and a venue.

    alpha    WETH/USDC and WBTC/USDC, over a WebSocket; on the second chain WETH/USDC
    beta     WETH/USDC and DAI/USDC; on the second chain WETH/USDC
    gamma    WBTC/USDC and DAI/USDC
    rapid    agent that trades with all makers, on both chains
    plain    agent that trades with beta alone, on both chains

The makers' prices walk at random by the same seed, and so move together. Each role is opened from its
settings file in the folder; a role that is left out can run in a process of its own, from the same file.
"""

import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from secrets import token_hex
from socket import socket as Socket  # noqa: N812 - `socket` is the module's name

import trio
from msgspec import Struct

from ....config.chains import ChainSettings
from ....config.errors import ConfigError
from ....config.limits import DEVNET_ACCOUNTS
from ....crypto.custody.mnemonic import DEV_MNEMONIC, account_keys
from ....crypto.secp256k1 import SigningKey
from ...chain.port import DevChain
from ...host.process.clock import WallClock
from ...roles.maker.quoting.memory import QUOTES
from ...store.process.place import FILE_NAME
from ..bridge.devnet_bridge import DevnetBridge
from ..devnet.bridge_places import approve_all
from ..devnet.serve import DevnetOptions, RunningChain, listening, mine_regularly, running_chain
from .layout import CHAIN_ID, FAR_CHAIN_ID, VENUE, Layout, MakerPlan
from .roles import RunningRoles, new_secrets, running_roles, write_roles

SECRETS_FILE = "secrets.env"
OPERATOR_KEY = "OPERATOR_KEY"
"""Variable of the venue's API key with which an operator signs in to the console."""
TRADERS = slice(2, 7)
"""Accounts of the devnet that may trade: Delta and the Router are approved for their tokens."""
_RELAYER = 1
_MAKER_ACCOUNTS = slice(7, 10)
_TOKENS = ("WETH", "USDC", "WBTC", "DAI")
_BRIDGED = ("USDC", "WETH")
_STALE_S = 60
_ROLES_FROM = 101  # port of the first maker, above the venue's
_PAIRS = {
    "WETH/USDC": 'start = "2500", size = "5", volatility_bps = 3',
    "WBTC/USDC": 'start = "60000", size = "0.5", volatility_bps = 3',
    "DAI/USDC": 'start = "1", size = "20000", volatility_bps = 1',
}
_QUOTED = {
    "alpha": {"WETH/USDC": 4, "WBTC/USDC": 8},
    "beta": {"WETH/USDC": 6, "DAI/USDC": 2},
    "gamma": {"WBTC/USDC": 6, "DAI/USDC": 4},
}
"""Name of a maker -> its pairs -> distance between best bid and best ask in basis points."""
_QUOTED_FAR = {"alpha": {"WETH/USDC": 5}, "beta": {"WETH/USDC": 7}}
"""Likewise, on the second chain."""
AGENTS = {"rapid": ("alpha", "beta", "gamma"), "plain": ("beta",)}
ROLES = (VENUE, *_QUOTED, *AGENTS)
"""Names of the roles; the first is the venue."""
_VENUE_TEXT = """
[venue.rate_tiers]
public = { per_s = 1000, burst = 5000 }
[venue.firm]
unfilled_max = 256 # a developer builds swaps that are never sent
[venue.api_keys.operator]
secret = "env:OPERATOR_KEY"
operator = true
"""


class UpOptions(Struct, frozen=True, kw_only=True):
    """Options of `cambist up`.

    Attributes:
        folder: folder of the roles' settings files and state, of secrets.env and of the chains' files.
        is_kept: whether the chains and the secrets of the folder are used again at the next start.
        port: TCP port of the venue, from which the other roles' ports follow; 0 lets the system choose all.
        devnet_port: TCP port of the first chain; the second chain and the bridges have the next two.
        block_time_s: seconds between blocks; 0 mines a block for each transaction.
        anvil: whether the chains are anvils even if the embedded EVM is installed.
        without: names of roles that do not run in this process.
    """

    folder: Path
    is_kept: bool
    port: int
    devnet_port: int
    block_time_s: float
    anvil: bool
    without: frozenset[str]


class UpPlace(Struct, frozen=True):
    """A running market place.

    Attributes:
        layout: the roles, with chains and ports.
        keys: keys of the devnet's accounts.
        secrets: environment variables that the roles' settings files name.
        near, far: the chains, with the commands of a development chain.
        roles: the roles that run in this process.
    """

    layout: Layout
    keys: tuple[SigningKey, ...]
    secrets: Mapping[str, str]
    near: DevChain
    far: DevChain
    roles: RunningRoles

    @property
    def operator_key(self) -> str:
        """API key with which an operator signs in to the console."""
        return self.secrets[OPERATOR_KEY]


async def serve_up(wanted: UpOptions, environ: Mapping[str, str], started: Callable[[UpPlace], None]) -> None:
    """Run the market place until SIGTERM or SIGINT; a second signal cancels all its tasks at once.

    Args:
        environ: environment variables, whose PATH is searched for anvil.
        started: function that is called once the venue has the books of the makers.

    Raises:
        ConfigError: a port or a file of the folder is in use, or a development chain is not installed.
    """
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        # The watch of signals outlives the place: a second signal ends a drain that hangs.
        async with trio.open_nursery() as nursery:
            async with running_up(wanted, environ, WallClock()) as place:
                started(place)
                ending = trio.Event()
                nursery.start_soon(_end_at_signal, signals, ending, nursery.cancel_scope)
                await ending.wait()
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def running_up(
    wanted: UpOptions,
    environ: Mapping[str, str],
    clock: WallClock,
    planned: Callable[[Layout], Layout] = lambda layout: layout,
) -> AsyncIterator[UpPlace]:
    """Context manager: run the market place; its body starts once the venue has the books of the makers.

    Args:
        environ: environment variables, whose PATH is searched for anvil.
        clock: clock of all roles.
        planned: returns the layout to run in place of that of `cambist up`.

    Raises:
        ConfigError: as `serve_up`.
        trio.TooSlowError: the venue is not ready in time.
    """
    keys = tuple(account_keys(DEV_MNEMONIC, DEVNET_ACCOUNTS))
    devnet = _devnet(wanted, keys)
    with ExitStack() as owned:
        # Sockets come first: the settings files name their ports, which port 0 leaves to the system.
        listeners = _listeners(owned, wanted)
        bridges = owned.enter_context(listening("127.0.0.1", _bridge_port(wanted), "--devnet-port"))
        async with (
            running_chain(devnet, environ, CHAIN_ID) as near,
            running_chain(devnet, environ, FAR_CHAIN_ID) as far,
            trio.open_nursery() as nursery,
        ):
            pairs = [(chain, running.entry) for chain, running in (near, far)]
            await nursery.start(DevnetBridge(bridges, keys[0]).run, pairs)
            ports = {name: listener.getsockname()[1] for name, listener in listeners.items()}
            url = f"http://127.0.0.1:{bridges.getsockname()[1]}"
            layout = planned(up_layout(near[1], far[1], url, ports, keys))
            await _approve(near, far, keys)
            # Only now: it ends automine, and each transaction above would then wait for the next block.
            if wanted.block_time_s:
                for chain, _ in (near, far):
                    nursery.start_soon(mine_regularly, chain, wanted.block_time_s)
            write_roles(layout, wanted.folder)
            if not wanted.is_kept:
                _forget_orders(wanted.folder)
            _forget_quotes(wanted.folder)
            variables = _secrets(wanted, layout, keys)  # no others: they could override a role's settings
            here = {name: listener for name, listener in listeners.items() if name not in wanted.without}
            for name in wanted.without:  # its port is in the settings files, and is free for its own process
                listeners[name].close()
            roles = running_roles(layout, wanted.folder, variables, clock, here, store_in_process=True)
            async with roles as running:
                plans = (layout.makers[name] for name in running.makers)
                await running.ready(sum(len(plan.pairs) + len(plan.far_pairs) for plan in plans))
                yield UpPlace(
                    layout=layout,
                    keys=keys,
                    secrets=variables,
                    near=near[0],
                    far=far[0],
                    roles=running,
                )
            nursery.cancel_scope.cancel()


def up_layout(
    near: RunningChain,
    far: RunningChain,
    bridge_url: str,
    ports: Mapping[str, int],
    keys: Sequence[SigningKey],
) -> Layout:
    """Describe the roles of `cambist up`.

    Args:
        ports: TCP ports of the roles, by name.
        keys: keys of the devnet's accounts.
    """
    return Layout(
        near=near,
        far=far,
        bridge_url=bridge_url,
        tokens=_TOKENS,
        makers={
            name: MakerPlan(
                pairs=tuple(pairs),
                prices=_prices(pairs),
                account=key.address,
                far_pairs=tuple(there := _QUOTED_FAR.get(name, {})),
                far_prices=_prices(there),
                is_streaming=name == "alpha",
            )
            for (name, pairs), key in zip(_QUOTED.items(), keys[_MAKER_ACCOUNTS], strict=True)
        },
        agents=AGENTS,
        bridges={"across": "", "cctp": 'tier = "fast"'},
        bridged=_BRIDGED,
        ports=ports,
        stale_s=_STALE_S,
        server='cors_origins = ["*"]\n',
        venue=_VENUE_TEXT,
    )


def _prices(spreads: Mapping[str, int]) -> str:
    text = 'price_source = "random_walk"\nprice_options.seed = 1\n'
    for pair, spread_bps in spreads.items():
        text += f'price_options.pairs."{pair}" = {{ {_PAIRS[pair]}, spread_bps = {spread_bps} }}\n'
    return text


def _devnet(wanted: UpOptions, keys: tuple[SigningKey, ...]) -> DevnetOptions:
    return DevnetOptions(
        chains={chain_id: ChainSettings(name=f"Devnet {chain_id}") for chain_id in (CHAIN_ID, FAR_CHAIN_ID)},
        host="127.0.0.1",
        port=wanted.devnet_port,
        keys=keys,
        mnemonic=DEV_MNEMONIC,
        block_time_s=0,  # blocks follow regularly once the market place is set up
        anvil=wanted.anvil,
        state_dir=wanted.folder,
        is_kept=wanted.is_kept,
        port_option="--devnet-port",
    )


def _bridge_port(wanted: UpOptions) -> int:
    return wanted.devnet_port and wanted.devnet_port + 2


def _listeners(owned: ExitStack, wanted: UpOptions) -> dict[str, Socket]:
    """Listen on a TCP port for each role, and return the sockets by the names of the roles.

    The venue has `wanted.port`, the other roles the ports from _ROLES_FROM above it; the system chooses all
    ports if `wanted.port` is 0.
    """
    ports = [wanted.port, *(wanted.port and wanted.port + _ROLES_FROM + at for at in range(len(ROLES) - 1))]
    return {
        name: owned.enter_context(listening("127.0.0.1", port))
        for name, port in zip(ROLES, ports, strict=True)
    }


async def _approve(
    near: tuple[DevChain, RunningChain], far: tuple[DevChain, RunningChain], keys: tuple[SigningKey, ...]
) -> None:
    """Approve the RFQ contracts for the makers' tokens, and Delta and the Router for the traders'."""
    async with trio.open_nursery() as nursery:
        for (chain, running), symbols in ((near, _TOKENS), (far, _BRIDGED)):
            tokens = [running.at(symbol) for symbol in symbols]
            for key in keys[_MAKER_ACCOUNTS]:
                nursery.start_soon(approve_all, chain, key, running.at("rfq"), tokens)
            for key in keys[TRADERS]:
                nursery.start_soon(_approve_trader, chain, running, key, tokens)


async def _approve_trader(
    chain: DevChain, running: RunningChain, key: SigningKey, tokens: list[bytes]
) -> None:
    for spender in ("delta", "router"):
        await approve_all(chain, key, running.at(spender), tokens)


def _secrets(wanted: UpOptions, layout: Layout, keys: tuple[SigningKey, ...]) -> dict[str, str]:
    """Make the variables of secrets.env, write the file, and return the variables.

    In a kept folder, the values of an earlier file stay.

    Raises:
        ConfigError: the file cannot be read or written.
    """
    path = wanted.folder / SECRETS_FILE
    named = dict(zip(_QUOTED, keys[_MAKER_ACCOUNTS], strict=True)) | {"relayer": keys[_RELAYER]}
    found = new_secrets(layout, named) | {OPERATOR_KEY: token_hex(16)}
    try:
        if wanted.is_kept and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                name, _, value = line.partition("=")
                found[name] = value
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(f"{name}={value}\n" for name, value in found.items())
    except (OSError, ValueError) as error:
        raise ConfigError(str(path), f"cannot be used: {error}") from None
    return found


def _forget_orders(folder: Path) -> None:
    """Remove the venue's database, whose orders and blocks are of chains that are gone."""
    for suffix in ("", "-wal", "-shm"):
        (folder / VENUE / f"{FILE_NAME}{suffix}").unlink(missing_ok=True)


def _forget_quotes(folder: Path) -> None:
    """Remove the makers' files of live quotes, so that a maker that was killed signs again at once.

    By its file, the maker would wait until its last quotes have expired. Without the file, such a quote may
    be filled beside new quotes. That does no harm here: the tokens are worth nothing, and a fill moves no
    more than the maker has.
    """
    for name in _QUOTED:
        for path in (folder / name).glob(f"{QUOTES}*.json"):
            path.unlink()


async def _end_at_signal(
    signals: AsyncIterator[int], ending: trio.Event, everything: trio.CancelScope
) -> None:
    async for _ in signals:
        ending.set()
        break
    async for _ in signals:
        everything.cancel()
