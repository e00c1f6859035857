"""cambist: a request-for-quote and intent venue for EVM chains, and the market maker's side of it.

The code lives in five packages, each importing only those to its left:
`config <- crypto <- codecs <- feeds <- engine`. See ARCHITECTURE.md.
"""

from .config.version import __version__ as __version__
