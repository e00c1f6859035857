"""Structured logs on standard error: JSON lines, or readable lines on a terminal. Hot paths do not log.

Tracebacks are plain, since local variables may hold keys.
"""

import sys

import structlog


def configure_logs(level: str = "info") -> None:
    """Set up this process's logs; the process calls this function once, before the first log line.

    Args:
        level: least level that is logged: debug, info, warning, error.
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
