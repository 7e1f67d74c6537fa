"""JSON with one meaning only, whoever sent it."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NoReturn

from shared.domain.canonical import INTEGER_MAX
from shared.domain.errors import InvalidRequest


def _refuse_float(_text: str) -> NoReturn:
    msg = "numbers in the body have to be whole; amounts are in minor units"
    raise InvalidRequest(msg)


def whole_number(text: str) -> int:
    """Read a number that was written with a fraction or an exponent, if it is whole all the same.

    Senders in some languages write 1 as ``1.0``; that is one number, and exact.

    Raises:
        InvalidRequest: it is not whole, or too large to be exact.
    """
    try:
        value = Decimal(text)
        # Compared before it is written out: a short text can name a number of a billion digits.
        is_exact = value.copy_abs() <= INTEGER_MAX and value == value.to_integral_value()
    except ArithmeticError:
        _refuse_float(text)
    return int(value) if is_exact else _refuse_float(text)


def read_json(text: str, *, fraction: Callable[[str], int] = _refuse_float) -> Any:  # noqa: ANN401 - validated next
    """Parse JSON strictly: no repeated names, no floats, no NaN, no integer that loses digits, no broken text.

    Args:
        fraction: reads a number that is written with a fraction or an exponent; none is read otherwise.

    Raises:
        InvalidRequest: the text is not such JSON.
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_float=fraction,
            parse_constant=_refuse_float,
            parse_int=_integer,
        )
        # Text that cannot be encoded could be neither digested nor stored; escapes can smuggle it in.
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        msg = "the body holds text that is not valid Unicode"
        raise InvalidRequest(msg) from error
    except (ValueError, RecursionError) as error:
        msg = "the body is not JSON"
        raise InvalidRequest(msg) from error
    return value


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        msg = "the body names a field twice"
        raise InvalidRequest(msg)
    return result


def _integer(text: str) -> int:
    # Far shorter than what Python refuses to convert, far longer than what is exact.
    if len(text) > len(str(INTEGER_MAX)) + 1 or abs(int(text)) > INTEGER_MAX:
        msg = "a number in the body is too large to be exact"
        raise InvalidRequest(msg)
    return int(text)
