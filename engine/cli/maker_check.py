"""`cambist maker check`: checks whether a market maker conforms to the interface (spec 3).

Exit status: 0 the maker conforms, 1 faults were found, 2 wrong usage, 3 the maker could not be reached at
all, 4 too little could be judged, 130 stopped.
"""

import os
import sys
import time
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import IO, Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ...config.errors import CambistError, ConfigError
from ...config.limits import RFQ_DOMAIN_NAME
from ...config.secret import SecretEncoding, read_secret
from ...crypto.addresses import checked_address
from ...crypto.hexadecimal import to_hex
from ...crypto.hmac_auth import decode_secret
from ..trader.conformance.check_table import CHECKS
from ..trader.conformance.checks.auth import Credentials
from ..trader.conformance.options import DEFAULT_TAKER, CheckOptions, read_base_url
from ..trader.conformance.probe import Unreachable
from ..trader.conformance.report import list_table, print_report, to_json, to_junit
from ..trader.conformance.rules import Selection
from ..trader.conformance.run import RunOutcome, RunReport, check_maker
from .parameters import ADDRESS, ParsedParam, parsed
from .sources import Decorator, secret_encoding, writing

UNREACHABLE, STOPPED = 3, 130
STATUS = {RunOutcome.CONFORMS: 0, RunOutcome.FAULTS: 1, RunOutcome.INCONCLUSIVE: 4}
_HTTP, _SOCKET = ("http", "https"), ("ws", "wss")
_ADDRESS = ParsedParam("address", lambda text, field: to_hex(checked_address(text, field)))
_FILE = click.Path(dir_okay=False, allow_dash=True)


def _url(name: str, member: str, schemes: tuple[str, ...], text: str) -> Decorator:
    """The click option for a URL.

    Args:
        name: the option, such as --node-url.
        member: member of `CheckOptions` that receives the URL.
        schemes: allowed schemes of the URL.
        text: help of the option.
    """
    return click.option(name, member, callback=parsed(partial(read_base_url, schemes=schemes)), help=text)


def _number(name: str, member: str, kind: click.ParamType[Any], default: float, text: str) -> Decorator:
    """The click option for a number.

    Args:
        name: the option, such as --pause.
        member: member of `CheckOptions` that receives the number.
        text: help of the option.
    """
    return click.option(name, member, type=kind, default=default, show_default=True, help=text)


@click.command(
    "check",
    short_help="Judge any market maker against the specification.",
    context_settings={"help_option_names": ["-h", "--help"]},  # as under `cambist`, also when run alone
)
@click.argument("url", required=False)
@click.option("--list", "list_only", is_flag=True, help="Print the table of checks and stop.")
@click.option("--strict", is_flag=True, help="Also check the rules of today's strictest consumers.")
@click.option("--only", multiple=True, metavar="PATTERN", help="Checks to run, e.g. `auth.*`; repeatable.")
@click.option("--skip", multiple=True, metavar="PATTERN", help="Checks to leave out; repeatable.")
@click.option("--domain", help="X-AUTH-DOMAIN; with --access-key and --secret, requests are signed.")
@click.option("--access-key", help="X-AUTH-ACCESS-KEY.")
@click.option("--secret", help="The secret key: env:NAME or file:PATH; never the text itself.")
@secret_encoding
@click.option("--chain-id", type=click.IntRange(min=1), help="Chain id of the orders' signing domain.")
@click.option("--rfq-contract", type=ADDRESS, help="Contract of the orders' signing domain.")
@click.option(
    "--domain-name", default=RFQ_DOMAIN_NAME, show_default=True, help="Name of the orders' signing domain."
)
@click.option("--contract-maker", is_flag=True, help="The maker signs by EIP-1271.")
@_url("--node-url", "node", _HTTP, "A JSON-RPC node: balances, allowances, EIP-1271.")
@_url("--ws-url", "socket", _SOCKET, "The WebSocket; URL/ws if absent.")
@click.option("--taker", type=_ADDRESS, help=f"A taker that the maker allows; {DEFAULT_TAKER} if absent.")
@click.option("--user", type=_ADDRESS, help="The user of every quote; another user each time if absent.")
@click.option("--blacklisted", type=_ADDRESS, help="A blacklisted user; the first of /blacklist if absent.")
@_number(
    "--drift-bps",
    "drift_bps",
    click.IntRange(0, 10_000),
    30,
    "Tolerance of a price outside the grids around it, basis points.",
)
@_number("--pairs", "pairs_max", click.IntRange(1, 1_000), 3, "Pairs to quote.")
@_number(
    "--quotes", "quotes", click.IntRange(0, 1_000_000), 200, "Quotes of the load; 0 leaves the load out."
)
@_number("--connections", "connections", click.IntRange(1, 256), 4, "Connections of the load.")
@_number("--watch", "watch_s", click.FloatRange(0, 3_600), 5.0, "Seconds to watch the WebSocket's updates.")
@_number("--timeout", "timeout_s", click.FloatRange(0.05, 60), 5.0, "Seconds per answer.")
@_number(
    "--pause",
    "pause_s",
    click.FloatRange(0, 60),
    0.0,
    "Seconds after every answer, for a maker that limits the rate.",
)
@_number("--run-timeout", "run_timeout_s", click.FloatRange(1, 86_400), 300.0, "Seconds for the whole run.")
@_number("--seed", "seed", click.IntRange(min=0), 1, "Seed of amounts and noise.")
@click.option(
    "--ca",
    "authorities",
    type=click.Path(exists=True, dir_okay=False),
    help="PEM file of certificates to trust.",
)
@click.option("--allow-no-quotes", is_flag=True, help="A maker that gives no firm quote may conform.")
@click.option("--json", "json_path", type=_FILE, help="Write the report as JSON; - for standard output.")
@click.option("--junit", "junit_path", type=_FILE, help="Write the report as JUnit XML; as --json.")
@click.pass_context
def check(
    ctx: click.Context,
    /,
    *,
    url: str | None,
    list_only: bool,
    json_path: str | None,
    junit_path: str | None,
    **settings: Any,
) -> None:
    """Judge the market maker at URL by its answers to valid and to deliberately malformed requests.

    URL is the maker's base URL for one chain. A run sends some 450 requests, of which 280 ask for firm
    quotes, and malformed input of a few megabytes. Exit status: 0 conforms, 1 faults were found, 2 wrong
    usage, 3 unreachable, 4 too few checks gave a verdict, 130 stopped by Ctrl-C.

    \b
    cambist maker check https://maker.example/1 --chain-id 1 \\
        --rfq-contract 0x... --taker 0x... \\
        --domain venue --access-key k1 --secret env:MAKER_SECRET
    """
    if list_only:
        _console(sys.stdout).print(list_table())
        return
    if url is None:
        raise click.UsageError("missing the maker's URL", ctx)
    try:
        options = _options(url, settings)
        if json_path and json_path == junit_path:
            raise ConfigError("--json, --junit", "name two files: each report fills its own")
        json_file, junit_file = _opened(json_path), _opened(junit_path)  # first: a bad path wastes no run
        report = _run(options)
        # A report on standard output stands there alone.
        print_report(report, _console(sys.stderr if "-" in (json_path, junit_path) else sys.stdout))
        _write(json_path, json_file, to_json(report))
        _write(junit_path, junit_file, to_junit(report))
    except Unreachable as error:  # a CambistError too, but not the fault of the command line
        click.echo(f"Error: the maker cannot be reached: {error.detail}", err=True)
        ctx.exit(UNREACHABLE)
    except CambistError as error:
        raise click.UsageError(error.detail, ctx) from None
    except KeyboardInterrupt:
        click.echo("Error: stopped before the end: there is no report", err=True)
        ctx.exit(STOPPED)
    ctx.exit(STATUS[report.outcome])


def _opened(path: str | None) -> IO[bytes] | None:
    """Open the file for a report of the checks; None if no path is given.

    Raises:
        ConfigError: the file cannot be written.
    """
    if path is None:
        return None
    with writing(path):
        return click.open_file(path, "wb")


def _write(path: str | None, file: IO[bytes] | None, report: bytes) -> None:
    """Write a report of the checks to its opened file, and close the file.

    Raises:
        ConfigError: the file cannot be written.
    """
    if file is not None:
        with writing(str(path)), file:
            file.write(report)


def _console(file: IO[str]) -> Console:
    width = None if file.isatty() else 110
    return Console(file=file, markup=False, emoji=False, highlight=False, width=width)


def _options(url: str, settings: dict[str, Any]) -> CheckOptions:
    """Parse the command line of `maker check` into the options of a run.

    Args:
        settings: option name -> value: members of `CheckOptions`, and the parts of its `selection` and
            `credentials`; the call removes these parts.

    Raises:
        ConfigError: an option is wrong, or options contradict each other.
    """
    only, skip, strict = (settings.pop(name) for name in ("only", "skip", "strict"))
    for option, patterns in (("--only", only), ("--skip", skip)):
        for pattern in patterns:
            if not any(fnmatchcase(check_id, pattern) for check_id in CHECKS):
                raise ConfigError(option, f"no check matches {pattern}; see --list")
    selection = Selection(only, skip, strict)
    if not any(row in selection for row in CHECKS.values()):
        raise ConfigError("--only", "no check is left; a strict one needs --strict")
    encoding: SecretEncoding = settings.pop("secret_encoding")
    values = {name: settings.pop(name) for name in ("domain", "access_key", "secret")}
    base, credentials = read_base_url(url, "URL", _HTTP), credentials_of(values, encoding)
    return CheckOptions(base=base, selection=selection, credentials=credentials, **settings)


def credentials_of(values: Mapping[str, str | None], encoding: SecretEncoding) -> Credentials | None:
    """Read the credentials that --domain, --access-key and --secret name; None if all three are absent.

    Args:
        values: `domain`, `access_key` and `secret` -> the option's value.

    Raises:
        ConfigError: an option is missing or wrong.
    """
    missing = [f"--{name.replace('_', '-')}" for name, value in values.items() if value is None]
    if len(missing) == len(values):
        return None
    if missing:
        raise ConfigError(", ".join(missing), "needed too: a signature takes all three")
    secret = decode_secret(read_secret(values["secret"], os.environ, "--secret").reveal(), encoding)
    credentials = Credentials(str(values["domain"]), str(values["access_key"]), secret)
    credentials.signer()  # refuses values that no header can carry
    return credentials


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _run(options: CheckOptions) -> RunReport:
    """Run the checks of a maker, with a progress bar if standard error is a terminal."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("checks"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task("connecting", total=None)

        def on_progress(stage: str, judged: int, selected: int) -> None:
            bar.update(task, description=stage, completed=judged, total=selected)

        return check_maker(options, now_ms=_now_ms, on_progress=on_progress)
