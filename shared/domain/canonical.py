"""Canonical JSON (RFC 8785) and digests: the same value has the same bytes in every process and every release."""

import hashlib
from typing import Final, TypeAlias

import rfc8785

Json: TypeAlias = "bool | int | str | list[Json] | dict[str, Json] | None"

# RFC 8785 writes numbers as IEEE doubles; above this an integer would silently lose digits.
INTEGER_MAX: Final = 2**53 - 1


def canonical(value: Json) -> bytes:
    """Return the canonical bytes of a value made of null, booleans, integers, strings, lists and objects.

    Raises:
        ValueError: a float, an integer beyond 2**53 - 1, a key that is not text, a lone surrogate or a foreign type.
    """
    _refuse_ambiguous(value, "$")
    try:
        return rfc8785.dumps(value)
    except rfc8785.CanonicalizationError as error:
        msg = f"no canonical form: {error}"
        raise ValueError(msg) from error


def digest(purpose: str, value: Json) -> str:
    """Return the SHA-256 (hex) over a purpose and a value.

    The purpose keeps a digest made for one use from standing in for another.
    """
    return hashlib.sha256(canonical([purpose, value])).hexdigest()


def short_digest(purpose: str, value: Json) -> str:
    """Return the first 128 bits (hex) of `digest`: enough for a version stamp, at half the bytes in a checkpoint."""
    return digest(purpose, value)[:32]


def _refuse_ambiguous(value: object, where: str) -> None:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return
    if isinstance(value, int):
        if abs(value) > INTEGER_MAX:
            msg = f"{where}: integer outside the exact range"
            raise ValueError(msg)
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_ambiguous(item, f"{where}[{index}]")
        return
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                msg = f"{where}: key {key!r} is not text"
                raise ValueError(msg)  # noqa: TRY004 - one error type for one promise
            _refuse_ambiguous(item, f"{where}.{key}")
        return
    msg = f"{where}: {type(value).__name__} has no canonical form"
    raise ValueError(msg)
