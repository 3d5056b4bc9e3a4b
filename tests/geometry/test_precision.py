"""The F143 codec against the table of its values, over every half and every code."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.precision import (
    F8,
    PANEL_ROW_BYTES,
    SCALE_EXPONENTS,
    decode_f143,
    encode_f143,
    scale_for_max,
)
from tests.geometry.strategies import PRECISIONS

ALL_HALVES: npt.NDArray[np.float16] = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def value_of_code(code: int) -> float:
    """By the definition of the format."""
    if code == 0x80:
        return math.nan
    sign, exponent, mantissa = code >> 7, code >> 3 & 15, code & 7
    if exponent == 0:
        return (-1) ** sign * 2.0**-10 * mantissa
    return (-1) ** sign * 2.0 ** (exponent - 8) * (1 + mantissa / 8)


def nearest_code(value: float) -> int:
    """By search: the closest of the 128 magnitudes, an even code on a tie; zero has one encoding."""
    if math.isnan(value):
        return 0x80
    magnitudes = [value_of_code(code) for code in range(128)]
    distances = [abs(min(abs(value), 240.0) - magnitude) for magnitude in magnitudes]
    best = min(distances)
    code = min((c for c in range(128) if distances[c] == best), key=lambda c: c & 1)
    return code | 0x80 if value < 0 and code else code


def test_a_panel_row_is_32_bytes_in_every_precision() -> None:
    for precision in PRECISIONS:
        assert precision.micro * precision.element_bytes == PANEL_ROW_BYTES
        assert precision.dtype.itemsize == precision.element_bytes
    assert [precision.micro for precision in PRECISIONS] == [8, 16, 32]


def test_every_code_decodes_to_its_definition() -> None:
    values = decode_f143(np.arange(256, dtype=np.uint8))
    for code in range(256):
        expected = value_of_code(code)
        assert math.isnan(values[code]) if math.isnan(expected) else values[code] == expected
    assert np.nanmax(values) == 240.0
    assert value_of_code(0x7F) == 240.0


def test_every_code_survives_a_round_trip() -> None:
    codes = np.arange(256, dtype=np.uint8)
    for scale in (-32, -3, 0, 5, 31):
        assert np.array_equal(encode_f143(decode_f143(codes, scale), scale), codes)


def test_every_half_encodes_to_the_nearest_code() -> None:
    numbers = ALL_HALVES[~np.isnan(ALL_HALVES)]
    magnitudes = np.array([value_of_code(code) for code in range(128)])
    exact = np.minimum(np.abs(numbers.astype(np.float64)), 240.0)
    distances = np.abs(exact[:, None] - magnitudes[None, :])
    nearest = distances == distances.min(axis=1, keepdims=True)
    even_first = np.concatenate([np.arange(0, 128, 2), np.arange(1, 128, 2)])
    expected = even_first[np.argmax(nearest[:, even_first], axis=1)]
    expected = np.where((numbers < 0) & (expected != 0), expected | 0x80, expected)
    assert np.array_equal(encode_f143(numbers), expected)
    assert set(encode_f143(ALL_HALVES[np.isnan(ALL_HALVES)]).tolist()) == {0x80}


def test_no_half_but_nan_encodes_to_nan() -> None:
    # 0x80, the code that a sign and no magnitude would give, is NaN: tiny negatives must not become it.
    assert not np.any(encode_f143(ALL_HALVES[~np.isnan(ALL_HALVES)]) == 0x80)
    assert encode_f143(np.float16(-6e-8)) == 0x00
    assert encode_f143(np.float16(-0.0)) == 0x00


def test_infinities_saturate() -> None:
    assert list(encode_f143([math.inf, -math.inf, 1e30, -1e30])) == [0x7F, 0xFF, 0x7F, 0xFF]


@given(st.floats(width=32), st.sampled_from([-32, -7, 0, 4, 31]))
def test_scaled_values_encode_to_the_nearest_code(value: float, scale: int) -> None:
    assert int(encode_f143(value, scale)) == nearest_code(
        math.ldexp(value, -scale) if math.isfinite(value) else value
    )


@given(st.floats(min_value=0, max_value=1e20))
def test_the_scale_of_a_maximum_is_the_least_that_holds_it(largest: float) -> None:
    scale = scale_for_max(largest)
    assert scale in SCALE_EXPONENTS
    assert largest <= math.ldexp(240.0, scale) or scale == 31
    assert scale == -32 or largest > math.ldexp(240.0, scale - 1)


def test_scales_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ValueError, match=r"scale exponent 32 is not in -32 \.\. 31"):
        F8(scale_exponent=32)
    with pytest.raises(ValueError, match="scale exponent -33"):
        encode_f143(1.0, -33)
    with pytest.raises(ValueError, match="finite and not negative, not inf"):
        scale_for_max(math.inf)
