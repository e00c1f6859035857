"""Settings: defaults, the file, the environment on top; and every refusal names the setting."""

import dataclasses
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import msgspec.inspect
import pytest

from cambist.config.chains import SHIPPED_CHAINS
from cambist.config.errors import ConfigError
from cambist.config.secret import Secret, read_secret
from cambist.config.settings import SETTINGS_BYTES_MAX, Settings, parse_settings, read_settings

ADDRESS = "0x" + "11" * 20
OTHER = "0x" + "22" * 20
SECRET = "correct horse battery staple"


def settings(text: str = "", environ: Mapping[str, str] | None = None) -> Settings:
    return parse_settings(text, environ or {}, Path())


def refusal(text: str = "", environ: Mapping[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        settings(text, environ)
    return str(caught.value)


@pytest.mark.parametrize(
    ("chain_id", "said", "has"),
    [(31337, "", True), (31338, "", True), (777, "", False), (31337, "rfq = false", False)],
)
def test_a_devnet_has_otc_unless_it_says_no(chain_id: int, said: str, has: bool) -> None:
    chains = settings(f'[chains.{chain_id}]\nname = "devnet"\n{said}\n').chains
    assert chains[chain_id].rfq is has


def test_defaults_need_no_file() -> None:
    default = read_settings(None, {"HOME": "/nowhere"})
    assert default.chains == SHIPPED_CHAINS
    assert default.chains is not SHIPPED_CHAINS
    assert (default.tokens, default.partners, default.tiers, default.keys) == ((), {}, {}, {})
    assert default.strict_partner is False
    assert default.auth.replay_window is False
    assert default.auth.strip_prefix == ""


def test_a_whole_file() -> None:
    read = settings(
        f"""
        state_dir = "state"
        strict_partner = true
        route_seal_keys = ["env:SEAL", "env:SEAL_OLD"]
        [chains.1]
        rfq_contract = "{ADDRESS}"
        [chains.31337]
        name = "devnet"
        rfq = true
        [[tokens]]
        chain_id = 31337
        address = "{OTHER}"
        symbol = "USDC"
        decimals = 6
        [tiers.silver]
        fee_bps_max = 50
        [partners.wallet]
        address = "{ADDRESS}"
        fee_bps = 20
        tier = "silver"
        [keys.maker]
        source = "env:MAKER_KEY"
        [keys.maker.policy]
        contracts = ["1:{ADDRESS}"]
        [auth.domains.venue]
        keys = [{{ access_key = "k1", secret = "env:S1" }}, {{ access_key = "k1", secret = "env:S2" }}]
        secret_encoding = "base64"
        """,
        {"SEAL": "a", "SEAL_OLD": "b", "MAKER_KEY": "c", "S1": "d", "S2": "e"},
    )
    assert read.state_dir == "state"
    assert [key.reveal() for key in read.route_seal_keys] == ["a", "b"]
    assert read.chains[1].rfq_contract == ADDRESS
    assert read.chains[1].name == "Ethereum", "what the file does not say stays as shipped"
    assert read.chains[31337].name == "devnet"
    assert read.chains[56] == SHIPPED_CHAINS[56]
    assert read.tokens[0].symbol == "USDC"
    assert read.partners["wallet"].fee_bps == 20
    assert read.keys["maker"].source.reveal() == "c"
    assert read.keys["maker"].policy.expiry_min_s == 120
    assert [key.secret.reveal() for key in read.auth.domains["venue"].keys] == ["d", "e"]


def test_reading_never_changes_what_ships() -> None:
    before = dict(SHIPPED_CHAINS)
    settings("[chains.1]\nname = 'mine'\nconfirmations = 3")
    assert before == SHIPPED_CHAINS


VENUES_MAKER = "[venue.makers.m]\nchains.1.url = 'http://m/1'\n"
MAKER = "[maker.chains.1]\nkey = 'k'\nprice_source = 'static'\n"
UNKNOWN = {
    "top level": ("colour = 1", "colour"),
    "section": ("[colour]\nred = 1", "colour"),
    "in a section": ("[auth]\ncolour = 1", "auth.colour"),
    "in a chain": ("[chains.1]\ncolour = 1", "chains.1.colour"),
    "in a new chain": ("[chains.31337]\nname = 'x'\ncolour = 1", "chains.31337.colour"),
    "in a key": ("[keys.maker]\nsource = 'env:K'\ncolour = 1", "keys.maker.colour"),
    "in a policy": ("[keys.maker]\nsource = 'env:K'\npolicy.colour = 1", "keys.maker.policy.colour"),
    "in a token": (
        f"[[tokens]]\nchain_id = 1\naddress = '{ADDRESS}'\nsymbol = 'A'\ndecimals = 6\ncolour = 1",
        "tokens[0].colour",
    ),
    "in a partner": (f"[partners.p]\naddress = '{ADDRESS}'\ncolour = 1", "partners.p.colour"),
    "in a tier": ("[tiers.t]\ncolour = 1", "tiers.t.colour"),
    "in a domain": (
        "[auth.domains.v]\nkeys = [{ access_key = 'k', secret = 'env:K' }]\ncolour = 1",
        "auth.domains.v.colour",
    ),
    "in a domain's key": (
        "[auth.domains.v]\nkeys = [{ access_key = 'k', secret = 'env:K', colour = 1 }]",
        "auth.domains.v.keys[0].colour",
    ),
    "in a chain's node": ("[chains.1.node]\ncolour = 1", "chains.1.node.colour"),
    "in a relayer": ("[relayers.1]\nkey = 'k'\ncolour = 1", "relayers.1.colour"),
    "in the server": ("[server]\ncolour = 1", "server.colour"),
    "in the server's TLS": (
        "[server.tls]\ncertificate = 'c.pem'\nkey = 'k.pem'\ncolour = 1",
        "server.tls.colour",
    ),
    "in the store": ("[store]\ncolour = 1", "store.colour"),
    "in the venue": ("[venue]\ncolour = 1", "venue.colour"),
    "in firm quotes": ("[venue.firm]\ncolour = 1", "venue.firm.colour"),
    "in a rate tier": (
        "[venue.rate_tiers]\npublic = { per_s = 1, burst = 1 }\nkeyed = { per_s = 1, burst = 1, colour = 1 }",
        "venue.rate_tiers.keyed.colour",
    ),
    "in an API key": ("[venue.api_keys.a]\nsecret = 'env:K'\ncolour = 1", "venue.api_keys.a.colour"),
    "in a venue's maker": (
        f"{VENUES_MAKER}colour = 1",
        "venue.makers.m.colour",
    ),
    "in a maker's credentials": (
        f"{VENUES_MAKER}credentials = {{ domain = 'd', access_key = 'a', secret = 'env:K', colour = 1 }}",
        "venue.makers.m.credentials.colour",
    ),
    "in a maker's chain": (
        f"{VENUES_MAKER}[venue.makers.n.chains.10]\nurl = 'http://n/10'\ncolour = 1",
        "venue.makers.n.chains.10.colour",
    ),
    "in the maker": ("[maker]\nchains = {}\ncolour = 1", "maker.colour"),
    "in the maker's admin": (
        "[maker]\nchains = {}\nadmin = { port = 1, domains = [], colour = 1 }",
        "maker.admin.colour",
    ),
    "in the maker's chain": (f"{MAKER}colour = 1", "maker.chains.1.colour"),
    "in the maker's token": (
        f"{MAKER}tokens.A = {{ address = '{ADDRESS}', decimals = 6, colour = 1 }}",
        "maker.chains.1.tokens.A.colour",
    ),
    "in the maker's pair": (
        f"{MAKER}tokens = {{}}\npairs.P = {{ base = 'A', quote = 'B', liquidity_usd = '1', colour = 1 }}",
        "maker.chains.1.pairs.P.colour",
    ),
}


@pytest.mark.parametrize(("text", "name"), UNKNOWN.values(), ids=UNKNOWN)
def test_an_unknown_key_is_refused_by_name(text: str, name: str) -> None:
    assert refusal(text, {"K": SECRET}) == f"{name}: is not a setting"


def test_no_table_takes_what_it_does_not_know() -> None:
    tables = {table.cls.__name__: table for table in tables_in(msgspec.inspect.type_info(Settings))}
    assert tables.keys() > {
        "Settings",
        "ChainSettings",
        "TlsSettings",
        "RateTier",
        "MakerPair",
        "MakerCredentials",
    }
    assert [name for name, table in tables.items() if not table.forbid_unknown_fields] == []


def tables_in(kind: msgspec.inspect.Type) -> Iterator[msgspec.inspect.StructType]:
    """The structs that a type is made of, at any depth; one that stands in two places comes twice."""
    match kind:
        case msgspec.inspect.StructType():
            yield kind
            inner = [field.type for field in kind.fields]
        case msgspec.inspect.UnionType():
            inner = [*kind.types]
        case msgspec.inspect.DictType():
            inner = [kind.value_type]
        case msgspec.inspect.CollectionType():
            inner = [kind.item_type]
        case _:
            inner = []
    for part in inner:
        yield from tables_in(part)


WRONG = {
    "not TOML": ("x = = 1", "settings: not TOML: "),
    "a key twice": ("state_dir = 'a'\nstate_dir = 'b'", "settings: not TOML: "),
    "integer of 5000 digits": ("x = " + "9" * 5_000, "settings: not TOML: "),
    "arrays too deep": ("x = " + "[" * 20_000, "settings: not TOML: "),
    "home of nobody": ("state_dir = '~no-such-user/x'", "state_dir: "),
    "number for text": ("state_dir = 1", "state_dir: expected `str`, got `int`"),
    "text for boolean": ("strict_partner = 'yes'", "strict_partner: expected `bool`, got `str`"),
    "number for boolean": ("strict_partner = 7", "strict_partner: expected `bool`, got `int`"),
    "boolean for number": (
        "[chains.1]\nconfirmations = true",
        "chains.1.confirmations: expected `int`, got `bool`",
    ),
    "date for text": ("state_dir = 1979-05-27", "state_dir: expected `str`"),
    "text for table": ("chains = 'all'", "chains: expected `object`"),
    "text for a chain": ("[chains]\n1 = 'all'", "chains.1: expected `object`"),
    "table for tokens": ("[tokens]\nx = 1", "tokens: expected `array`"),
    "chain named by a word": ("[chains.mainnet]\nname = 'x'", "chains.mainnet: a chain is named by its id"),
    "chain zero": ("[chains.0]\nname = 'x'", "chains.0: a chain is named by its id"),
    "chain with leading zero": ("[chains.01]\nname = 'x'", "chains.01: a chain is named by its id"),
    "negative chain": ("[chains.-1]\nname = 'x'", "chains.-1: a chain is named by its id"),
    "chain id with line break": ('[chains."1\\n"]\nname = "x"', "chains.1\\n: a chain is named by its id"),
    "new chain without name": ("[chains.31337]\nrfq = true", "chains.31337: object missing required field"),
    "origin with a path": (
        "[server]\ncors_origins = ['http://a.example/']",
        "server: cors_origins are *, local",
    ),
    "host for an origin": ("[server]\ncors_origins = ['a.example']", "server: cors_origins are *, localhost"),
    "no confirmations": ("[chains.1]\nconfirmations = 0", "chains.1.confirmations: at least 1, got 0"),
    "strategy without a name": (
        f'[[chains.1.strategies]]\nvault = "{ADDRESS}"',
        "chains.1.strategies[0]: object missing required field `name`",
    ),
    "vault of a strategy": (
        '[[chains.1.strategies]]\nname = "a"\nvault = "0x1"',
        "chains.1.strategies[0].vault: expected an address",
    ),
    "strategy twice": (
        "[chains.1]\nstrategies = [" + f'{{ name = "a", vault = "{ADDRESS}" }}, ' * 2 + "]",
        "chains.1.strategies[1].vault: is already listed",
    ),
    "strategy that keeps all": (
        f'[[chains.1.strategies]]\nname = "a"\nvault = "{ADDRESS}"\nfee_bps = 10000',
        "chains.1.strategies[0].fee_bps: 0 to 9999, got 10000",
    ),
    "handler that is no address": (
        '[chains.1]\nhandlers = ["any"]',
        "chains.1.handlers[0]: expected an address",
    ),
    "too many strategies": (
        "[chains.1]\nstrategies = [" + f'{{ name = "a", vault = "{ADDRESS}" }}, ' * 65 + "]",
        "chains.1.strategies: at most 64, got 65",
    ),
    "chain's address": (
        "[chains.1]\nrouter = '0x1'",
        "chains.1.router: expected an address, neither zero nor",
    ),
    "address with line break": (
        f'[chains.1]\nexecutor = "{ADDRESS}\\n"',
        "chains.1.executor: expected an address",
    ),
    "partner's address": (
        "[partners.p]\naddress = 'me'",
        "partners.p.address: expected an address, neither",
    ),
    "partner's fee": (
        f"[partners.p]\naddress = '{ADDRESS}'\nfee_bps = 201",
        "partners.p: fee_bps is 0 to 200",
    ),
    "partner's negative fee": (
        f"[partners.p]\naddress = '{ADDRESS}'\nfee_bps = -1",
        "partners.p: fee_bps is",
    ),
    "partner's tier": (
        f"[partners.p]\naddress = '{ADDRESS}'\ntier = 'gold'",
        "partners.p.tier: unknown tier 'gold'",
    ),
    "partner above its tier": (
        f"[partners.p]\naddress = '{ADDRESS}'\ntier = 't'\nfee_bps = 11\n[tiers.t]\nfee_bps_max = 10",
        "partners.p.fee_bps: its tier allows at most 10, got 11",
    ),
    "partner above the default tier": (
        f"[partners.p]\naddress = '{ADDRESS}'\nfee_bps = 11\n[tiers.default]\nfee_bps_max = 10",
        "partners.p.fee_bps: its tier allows at most 10, got 11",
    ),
    "tier above 200": ("[tiers.t]\nfee_bps_max = 201", "tiers.t: fee_bps_max is 0 to 200, got 201"),
    "domain without keys": ("[auth.domains.v]\nkeys = []", "auth.domains.v.keys: 1 to 2, got 0"),
    "domain of three keys": (
        "[auth.domains.v]\nkeys = [" + "{ access_key = 'k', secret = 'env:K' }," * 3 + "]",
        "auth.domains.v.keys: 1 to 2, got 3",
    ),
    "unknown encoding": (
        "[auth.domains.v]\nkeys = [{ access_key = 'k', secret = 'env:K' }]\nsecret_encoding = 'rot13'",
        "auth.domains.v.secret_encoding: ",
    ),
    "secret that is not set": (
        "route_seal_keys = ['env:NOPE']",
        "route_seal_keys[0]: environment variable NOPE",
    ),
    "secret that is a number": (
        "route_seal_keys = [5]",
        "route_seal_keys[0]: expected env:NAME or file:PATH",
    ),
    "second bad of two": (
        f"[partners.good]\naddress = '{ADDRESS}'\n[partners.bad]\naddress = 5",
        "partners.bad.address: expected `str`",
    ),
    "first fault of two tables": (
        f"[partners.good]\naddress = '{ADDRESS}'\n[partners.bad]\naddress = 5\n[tiers.t]\nfee_bps_max = 'x'",
        "partners.bad.address: expected `str`",
    ),
    "fault deep in a named table": (
        f"[keys.a]\nsource = 'env:K'\n[keys.b]\nsource = 'env:K'\npolicy.amounts_max.'1:{ADDRESS}' = 5",
        f"keys.b.policy.amounts_max.1:{ADDRESS}: expected `str`, got `int`",
    ),
}


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_value_is_refused_by_name(text: str, said: str) -> None:
    told = refusal(text, {"K": SECRET})
    assert told.startswith(said)
    assert told.isprintable()
    assert SECRET not in told


TOKEN = "[[tokens]]\nchain_id = {}\naddress = '{}'\nsymbol = '{}'\ndecimals = 6\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(TOKEN.format(5, ADDRESS, "A"), "tokens[0].chain_id: unknown chain 5", id="chain"),
        pytest.param(TOKEN.format(1, "0x0", "A"), "tokens[0].address: expected an address", id="address"),
        pytest.param(
            TOKEN.format(1, "0x" + "aB" * 20, "A") + TOKEN.format(1, "0x" + "Ab" * 20, "B"),
            f"tokens[1]: 0x{'ab' * 20} is already listed on chain 1",
            id="one address in two spellings",
        ),
        pytest.param(
            TOKEN.format(1, ADDRESS, "A") + TOKEN.format(1, OTHER, "A"),
            "tokens[1]: A is already listed on chain 1",
            id="one symbol twice",
        ),
    ],
)
def test_a_wrong_token_list_is_refused(text: str, said: str) -> None:
    assert refusal(text).startswith(said)


def test_one_symbol_may_live_on_two_chains() -> None:
    assert len(settings(TOKEN.format(1, ADDRESS, "A") + TOKEN.format(10, ADDRESS, "A")).tokens) == 2


ENVIRONMENT = {
    "boolean": ({"CAMBIST__STRICT_PARTNER": "true"}, ("strict_partner",), True),
    "plain text": ({"CAMBIST__STATE_DIR": "/var/lib/x"}, ("state_dir",), "/var/lib/x"),
    "quoted text": ({"CAMBIST__STATE_DIR": "'12'"}, ("state_dir",), "12"),
    "empty text": ({"CAMBIST__STATE_DIR": ""}, ("state_dir",), ""),
    "text of two lines": ({"CAMBIST__STATE_DIR": "1\nx = 2"}, ("state_dir",), "1\nx = 2"),
    "brackets by the thousand": ({"CAMBIST__STATE_DIR": "[" * 20_000}, ("state_dir",), "[" * 20_000),
    "nested": ({"CAMBIST__AUTH__STRIP_PREFIX": "/api"}, ("auth", "strip_prefix"), "/api"),
    "lower case too": ({"CAMBIST__auth__replay_window": "true"}, ("auth", "replay_window"), True),
}


@pytest.mark.parametrize(("environ", "path", "value"), ENVIRONMENT.values(), ids=ENVIRONMENT)
def test_environment_overrides_one_setting(
    environ: dict[str, str], path: tuple[str, ...], value: object
) -> None:
    read: object = settings("state_dir = 'from the file'\n[auth]\nstrip_prefix = '/file'", environ)
    for name in path:
        read = getattr(read, name)
    assert read == value


def test_environment_reaches_into_tables_and_leaves_the_rest() -> None:
    read = settings(
        "[chains.1]\nname = 'mine'",
        {"CAMBIST__CHAINS__1__CONFIRMATIONS": "20", "CAMBIST__KEYS__MAKER__SOURCE": "env:K", "K": SECRET},
    )
    assert (read.chains[1].name, read.chains[1].confirmations) == ("mine", 20)
    assert read.keys["maker"].source.reveal() == SECRET


TIERS = {"public": (20, 100), "keyed": (200, 1_000)}
NAMED_TIERS: dict[str, tuple[str, dict[str, str], dict[str, tuple[int, int]]]] = {
    "none": ("[venue]", {}, TIERS),
    "another": ("[venue.rate_tiers]\nbulk = { per_s = 2, burst = 5 }", {}, TIERS | {"bulk": (2, 5)}),
    "one": ("[venue.rate_tiers]\nkeyed = { per_s = 2, burst = 5 }", {}, TIERS | {"keyed": (2, 5)}),
    "a member of one": ("[venue.rate_tiers.public]\nburst = 7", {}, TIERS | {"public": (20, 7)}),
    "by the environment": ("", {"PUBLIC__BURST": "7"}, TIERS | {"public": (20, 7)}),
    "by both": (
        "[venue.rate_tiers]\nkeyed = { per_s = 2, burst = 5 }",
        {"KEYED__PER_S": "3", "BULK": "{ per_s = 1, burst = 9 }", "FAST__PER_S": "8", "FAST__BURST": "8"},
        TIERS | {"keyed": (3, 5), "bulk": (1, 9), "fast": (8, 8)},
    ),
}


@pytest.mark.parametrize(("text", "environ", "tiers"), NAMED_TIERS.values(), ids=NAMED_TIERS)
def test_a_rate_tier_that_is_named_leaves_the_others(
    text: str, environ: dict[str, str], tiers: dict[str, tuple[int, int]]
) -> None:
    named = {f"CAMBIST__VENUE__RATE_TIERS__{name}": value for name, value in environ.items()}
    venue = settings(text, named).venue
    assert venue is not None
    assert {name: (tier.per_s, tier.burst) for name, tier in venue.rate_tiers.items()} == tiers


def test_a_new_rate_tier_has_both_members() -> None:
    said = refusal("[venue.rate_tiers.bulk]\nburst = 5")
    assert said == "venue.rate_tiers.bulk: object missing required field `per_s`"
    assert refusal("[venue]\nrate_tiers = 5").startswith("venue.rate_tiers: expected `object`")
    assert refusal("[venue.rate_tiers]\npublic = 5").startswith("venue.rate_tiers.public: expected `object`")


def test_the_environment_finds_a_name_in_any_case_and_makes_it_as_written() -> None:
    text = f"[partners.MyWallet]\naddress = '{ADDRESS}'\n[partners.other]\naddress = '{ADDRESS}'"
    read = settings(
        text,
        {
            "CAMBIST__PARTNERS__MYWALLET__FEE_BPS": "7",
            "CAMBIST__PARTNERS__Other__FEE_BPS": "8",
            "CAMBIST__PARTNERS__NewOne__ADDRESS": ADDRESS,
            "CAMBIST__PARTNERS__SECOND__ADDRESS": ADDRESS,
            "CAMBIST__VENUE__API_KEYS__FIRST__SECRET": "env:K",
            "CAMBIST__VENUE__MAKERS__ALPHA__CHAINS__1__URL": "http://127.0.0.1:9",
            "K": SECRET,
        },
    )
    fees = {name: partner.fee_bps for name, partner in read.partners.items()}
    assert fees == {"MyWallet": 7, "other": 8, "NewOne": 0, "second": 0}
    assert read.venue is not None
    assert read.venue.api_keys["first"].secret.reveal() == SECRET
    assert read.venue.makers["alpha"].chains[1].url == "http://127.0.0.1:9"


def test_a_name_that_two_entries_have_in_other_cases_is_refused() -> None:
    text = f"[partners.One]\naddress = '{ADDRESS}'\n[partners.ONE]\naddress = '{ADDRESS}'"
    said = refusal(text, {"CAMBIST__PARTNERS__one__FEE_BPS": "7"})
    assert said == "CAMBIST__PARTNERS__one__FEE_BPS: names two entries, One and ONE"
    read = settings(text, {"CAMBIST__PARTNERS__ONE__FEE_BPS": "7"})
    assert (read.partners["One"].fee_bps, read.partners["ONE"].fee_bps) == (0, 7)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("CAMBIST__COLOUR", "colour: is not a setting"),
        ("CAMBIST__CHAINS__1__COLOUR", "chains.1.colour: is not a setting"),
        ("CAMBIST__CHAINS__MAINNET__NAME", "chains.mainnet: a chain is named by its id"),
        ("CAMBIST__", "CAMBIST__: does not name a setting"),
        ("CAMBIST__AUTH__", "CAMBIST__AUTH__: does not name a setting"),
        ("CAMBIST____AUTH", "CAMBIST____AUTH: does not name a setting"),
        ("CAMBIST__STATE_DIR__X", "CAMBIST__STATE_DIR__X: does not name a setting"),
    ],
)
def test_environment_that_names_no_setting_is_refused(name: str, said: str) -> None:
    assert refusal("state_dir = 'x'", {name: "1"}).startswith(said)


@pytest.mark.parametrize("name", ["CAMBIST", "CAMBIST_CONFIG", "CAMBIST_X", "XCAMBIST__A", "cambist__a"])
def test_other_variables_are_left_alone(name: str) -> None:
    assert msgspec.structs.asdict(settings("", {name: "1"})) == msgspec.structs.asdict(settings())


def test_a_secret_in_settings_is_refused_and_not_repeated() -> None:
    for text in (
        f"route_seal_keys = ['{SECRET}']",
        f"[keys.maker]\nsource = '{SECRET}'",
        f"[keys.maker]\nsource = 'env:K'\npassword = '{SECRET}'",
        f"[auth.domains.v]\nkeys = [{{ access_key = 'k', secret = '{SECRET}' }}]",
    ):
        told = refusal(text, {"K": "x"})
        assert "expected env:NAME or file:PATH" in told
        assert SECRET not in told


def test_settings_show_no_secret() -> None:
    read = settings(
        "route_seal_keys = ['env:K']\n[keys.maker]\nsource = 'env:K'\npassword = 'env:K'\n"
        "[auth.domains.v]\nkeys = [{ access_key = 'k', secret = 'env:K' }]",
        {"K": SECRET},
    )
    assert SECRET not in repr(read) + str(read)
    for write in (msgspec.json.encode, msgspec.to_builtins, pickle.dumps):
        with pytest.raises(TypeError):
            write(read)


def test_settings_are_frozen() -> None:
    with pytest.raises((AttributeError, dataclasses.FrozenInstanceError)):
        settings().state_dir = "elsewhere"  # type: ignore[misc]


def test_a_file_is_read_and_its_secrets_lie_beside_it(tmp_path: Path) -> None:
    (tmp_path / "seal.key").write_text(SECRET + "\n")
    path = tmp_path / "cambist.toml"
    path.write_text("route_seal_keys = ['file:seal.key']")
    assert read_settings(path, {}).route_seal_keys[0].reveal() == SECRET


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        pytest.param(b"state_dir = '\xff'", "is not UTF-8 text", id="not text"),
        pytest.param(b"#" * (SETTINGS_BYTES_MAX + 1), "is larger than", id="too large"),
        pytest.param(None, "cannot be read: No such file", id="absent"),
    ],
)
def test_a_file_that_cannot_be_settings_is_named(tmp_path: Path, raw: bytes | None, said: str) -> None:
    path = tmp_path / "cambist.toml"
    if raw is not None:
        path.write_bytes(raw)
    with pytest.raises(ConfigError) as caught:
        read_settings(path, {})
    assert caught.value.key == str(path)
    assert said in str(caught.value)


def test_largest_file_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "cambist.toml"
    path.write_bytes(b"#" * SETTINGS_BYTES_MAX)
    assert read_settings(path, {}).state_dir == settings().state_dir


NOBODY = {"zero": "0x" + "0" * 40, "the native placeholder": "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"}


@pytest.mark.parametrize("nobody", NOBODY.values(), ids=NOBODY)
@pytest.mark.parametrize(
    "text",
    [
        "[chains.1]\nrfq_contract = 'ADDRESS'",
        "[partners.p]\naddress = 'ADDRESS'",
        "[[tokens]]\nchain_id = 1\naddress = 'ADDRESS'\nsymbol = 'A'\ndecimals = 6",
    ],
    ids=["contract", "partner", "token"],
)
def test_an_address_of_nobody_is_refused(text: str, nobody: str) -> None:
    assert "neither zero nor the native placeholder" in refusal(text.replace("ADDRESS", nobody))


@pytest.mark.parametrize("prefix", ["maker", "/maker/", "/"])
def test_a_prefix_that_could_never_be_stripped_is_refused(prefix: str) -> None:
    assert refusal(f"[auth]\nstrip_prefix = '{prefix}'").startswith("auth.strip_prefix: expected /path")


def test_addresses_and_digits_are_text_in_the_environment() -> None:
    read = settings(
        environ={
            "CAMBIST__CHAINS__1__RFQ_CONTRACT": ADDRESS,
            "CAMBIST__CHAINS__1__DELTA_DOMAIN_VERSION": "2",
            "CAMBIST__CHAINS__1__CONFIRMATIONS": "20",
            "CAMBIST__STRICT_PARTNER": "true",
        }
    )
    chain = read.chains[1]
    assert (chain.rfq_contract, chain.delta_domain_version, chain.confirmations) == (ADDRESS, "2", 20)
    assert read.strict_partner is True


@pytest.mark.parametrize(
    ("name", "value"), [("CAMBIST__\udcff", "1"), ("CAMBIST__STATE_DIR", "\udcff")], ids=["name", "value"]
)
def test_an_environment_that_is_not_text_is_refused(name: str, value: str) -> None:
    assert "must be UTF-8 text" in refusal(environ={name: value})


@pytest.mark.parametrize("slip", ["0x" + "ab" * 32, "ab" * 32])
def test_a_key_written_where_its_variable_belongs_is_not_repeated(slip: str) -> None:
    said = refusal(f"[keys.m]\nsource = 'env:{slip}'")
    assert "is not the name of a variable" in said
    assert slip not in said


def test_a_secret_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    references: list[object] = []

    def counted(reference: object, *more: Any) -> Secret:
        references.append(reference)
        return read_secret(reference, *more)

    monkeypatch.setattr("cambist.config.settings.read_secret", counted)
    read = settings("keys.maker.source = 'env:KEY'", {"KEY": "11" * 32, "CAMBIST__STATE_DIR": "x"})
    assert read.keys["maker"].source.reveal() == "11" * 32
    assert references == ["env:KEY"]


def test_a_replay_window_needs_one_process() -> None:
    alone = "[auth]\nreplay_window = true\n[server]\nprocesses = "
    assert settings(alone + "1").auth.replay_window
    assert refusal(alone + "2").startswith("auth.replay_window: needs server.processes = 1")
