"""Settings of the store: its database, its queue of writes, and its retention of ended rows."""

from urllib.parse import urlsplit

import msgspec

from .. import limits, timeouts

REFERENCES = ("env:", "file:")
POSTGRES = ("postgresql://", "postgres://")


class StoreSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of the database that holds orders and events.

    Attributes:
        url: `postgresql://...`, `sqlite:PATH`, or `env:NAME` or `file:PATH` that holds such a URL. A URL with
            a password has to be a reference. Empty means the file `cambist.sqlite3` in the state directory.
        queue_max: most writes that may wait; requests for more are answered 503.
        batch_max: most writes in one transaction.
        retention_days: days for which ended orders and their events are kept; 0 keeps them for ever.
        lease_s: seconds for which an engine process owns its part (shard) of the orders without renewal.
    """

    url: str = ""
    queue_max: int = limits.STORE_QUEUE_MAX
    batch_max: int = limits.STORE_BATCH_MAX
    retention_days: int = 0
    lease_s: float = timeouts.STORE_LEASE_S

    def __post_init__(self) -> None:
        if self.url and not self.url.startswith((*REFERENCES, *POSTGRES, "sqlite:")):
            raise ValueError("url is postgresql://..., sqlite:PATH, env:NAME or file:PATH")
        if self.url.startswith(POSTGRES) and urlsplit(self.url).password is not None:
            raise ValueError("url holds a password: put it into env:NAME or file:PATH, or use PGPASSFILE")
        if not 1 <= self.batch_max <= 65_536:
            raise ValueError(f"batch_max is 1 to 65536, got {self.batch_max}")
        if not 1 <= self.queue_max <= 1_000_000:
            raise ValueError(f"queue_max is 1 to 1000000, got {self.queue_max}")
        if not 0 <= self.retention_days <= 36_500:
            raise ValueError(f"retention_days is 0 to 36500, got {self.retention_days}")
        if not 1 <= self.lease_s <= 3_600:
            raise ValueError(f"lease_s is 1 to 3600, got {self.lease_s}")
