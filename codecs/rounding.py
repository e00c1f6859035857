"""Divide integers exactly, with the direction of rounding in the function's name.

Amounts that a user receives round down, amounts that a user pays round up (ARCHITECTURE.md, "Book").

All arguments are integers at or above zero, the divisor above zero; a divisor of zero is a programmer's error
and raises ZeroDivisionError. Overflow is impossible: Python integers are exact at any size.
"""


def div_down(number: int, divisor: int) -> int:
    """Compute floor(number / divisor)."""
    return number // divisor


def div_up(number: int, divisor: int) -> int:
    """Compute ceil(number / divisor)."""
    return -(-number // divisor)


def mul_div_down(number: int, factor: int, divisor: int) -> int:
    """Compute floor(number * factor / divisor)."""
    return number * factor // divisor


def mul_div_up(number: int, factor: int, divisor: int) -> int:
    """Compute ceil(number * factor / divisor)."""
    return -(-number * factor // divisor)
