"""Location of the database that the settings name. No database is opened here."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

from ....config.errors import ConfigError
from ....config.secret import read_secret
from ....config.sections.store import POSTGRES, REFERENCES

if TYPE_CHECKING:  # the store process does not import the settings
    from ....config.settings import Settings

FILE_NAME = "cambist.sqlite3"
_SQLITE = "sqlite:"


class SqlitePlace(Struct, frozen=True):
    """Location of a SQLite database: the path of its file."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def files(self) -> frozenset[Path]:
        """Return the absolute paths of all files of the database: the file (and `path` itself if `path` is a
        symbolic link), the write-ahead log, its index, and the lock file.
        """
        real = self.path.resolve()
        link = self.path.parent.resolve() / self.path.name
        return frozenset(
            {link, real, *(real.with_name(real.name + tail) for tail in ("-wal", "-shm", ".lock"))}
        )


class PostgresPlace(Struct, frozen=True):
    """Location of a PostgreSQL database: a URL, with or without password; `str()` omits the password."""

    url: str

    def __str__(self) -> str:
        url = urlsplit(self.url)
        host = url.netloc.rpartition("@")[2]
        return f"postgresql://{host}{url.path}"

    def __repr__(self) -> str:
        return f"PostgresPlace({self})"


StorePlace = SqlitePlace | PostgresPlace


def place_of(settings: "Settings", environ: Mapping[str, str], folder: Path) -> StorePlace:
    """Read the location of the store from the settings.

    Args:
        environ: environment variables that `env:NAME` refers to.
        folder: folder of the settings file, the base of relative paths.

    Raises:
        ConfigError: `store.url` refers to a secret that cannot be read, or is no URL of a database.
    """
    url = settings.store.url
    if url.startswith(REFERENCES):
        url = read_secret(url, environ, "store.url", folder).reveal()
    if url.startswith(POSTGRES):
        try:
            urlsplit(url)  # `str` of the place splits it again, where no error is expected
        except ValueError as error:
            raise ConfigError("store.url", f"is no URL: {error}") from None
        return PostgresPlace(url)
    if url and not url.startswith(_SQLITE):
        raise ConfigError("store.url", f"{settings.store.url} holds neither postgresql://... nor sqlite:PATH")
    name = url.removeprefix(_SQLITE) or f"{settings.state_dir}/{FILE_NAME}"
    try:
        return SqlitePlace(folder / Path(name).expanduser())
    except RuntimeError as error:  # ~ names an unknown user
        raise ConfigError("store.url", str(error)) from None
