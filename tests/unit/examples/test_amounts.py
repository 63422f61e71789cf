"""Invoices in exact decimals: rounded half to even, once, at the line."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.billing.amounts import Line, Plan, invoice_lines, total

TEAM = Plan("Team", Decimal("49.90"), Decimal(1000), Decimal("0.0325"))
QUANTITIES = st.decimals(min_value=0, max_value=10**12, places=6)
PRICES = st.decimals(min_value=0, max_value=10**6 - 1, places=6)


@pytest.mark.parametrize(
    ("quantity", "unit_price", "amount"),
    [
        ("1", "0.005", "0.00"),
        ("1", "0.015", "0.02"),
        ("1", "0.025", "0.02"),
        ("1", "0.0250001", "0.03"),
        ("3", "0.335", "1.00"),
        ("0.5", "0.01", "0.00"),
        ("1.5", "0.01", "0.02"),
        ("123456.789012", "0.012345", "1524.07"),
        ("0", "999999.999999", "0.00"),
    ],
)
def test_a_line_is_rounded_half_to_even(quantity: str, unit_price: str, amount: str) -> None:
    line = Line("any", Decimal(quantity), Decimal(unit_price))
    assert str(line.amount) == amount


@given(quantity=QUANTITIES, unit_price=PRICES)
def test_a_line_is_the_even_cent_nearest_to_the_exact_product(quantity: Decimal, unit_price: Decimal) -> None:
    amount = Line("any", quantity, unit_price).amount
    exact = Fraction(quantity) * Fraction(unit_price)
    assert Fraction(amount) == Fraction(round(exact * 100), 100)
    assert amount.as_tuple().exponent == -2


@pytest.mark.parametrize(
    ("used", "amounts"),
    [
        ("0", ["49.90"]),
        ("1000", ["49.90"]),
        ("1000.000001", ["49.90", "0.00"]),
        ("1500", ["49.90", "16.25"]),
        ("-5", ["49.90"]),
    ],
)
def test_only_units_beyond_the_included_ones_are_charged(used: str, amounts: list[str]) -> None:
    assert [str(line.amount) for line in invoice_lines(TEAM, Decimal(used))] == amounts


@given(used=QUANTITIES)
def test_the_total_is_the_sum_of_the_rounded_lines(used: Decimal) -> None:
    lines = invoice_lines(TEAM, used)
    assert Fraction(total(lines)) == sum(Fraction(line.amount) for line in lines)
