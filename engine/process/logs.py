"""Structured logs on standard error: JSON lines, or readable ones on a terminal. Never on a hot path.

Tracebacks are plain: local variables hold keys.
"""

import sys

import structlog


def configure_logs(level: str = "info") -> None:
    """Set up this process's logs. Call it once, before anything is logged.

    Args:
        level: what is less than this is dropped: debug, info, warning, error.
    """
    terminal = sys.stderr.isatty()
    render: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        if terminal
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.StackInfoRenderer(),
            *([] if terminal else [structlog.processors.format_exc_info]),
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
