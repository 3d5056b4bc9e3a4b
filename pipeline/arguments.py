"""Numbers of command lines, refused in words."""

import argparse


def whole(text: str) -> int:
    """A whole number from 0 on.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number from 0 on")
    return int(text)


def positive(text: str) -> int:
    """A whole number from 1 on.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    value = int(text) if text.isascii() and text.isdigit() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a positive whole number")
    return value
