"""What an invoice says, in exact decimals.

Each line is its quantity times its unit price, rounded half to even at two places. The total is the sum of the rounded
lines, so that what a reader of the invoice adds up is what is charged.
"""

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, Inexact

_CENT = Decimal("0.01")
# Wide enough for any product and sum of the columns' types: the first and only rounding is the one to whole cents.
_EXACT = Context(prec=60, traps=[Inexact])
_ROUNDING = Context(prec=60, rounding=ROUND_HALF_EVEN)


@dataclass(frozen=True, slots=True)
class Plan:
    """A price per period, the units that it includes, and the price of each further unit."""

    name: str
    price: Decimal
    included_units: Decimal
    unit_price: Decimal


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an invoice; `amount` follows from the other two."""

    description: str
    quantity: Decimal
    unit_price: Decimal

    @property
    def amount(self) -> Decimal:
        """Quantity times unit price, rounded half to even at two places."""
        return _EXACT.multiply(self.quantity, self.unit_price).quantize(_CENT, context=_ROUNDING)


def invoice_lines(plan: Plan, used_units: Decimal) -> tuple[Line, ...]:
    """Give the line for the plan's price, and one for what was used beyond the included units, if anything was."""
    fee = Line(f"Plan {plan.name}", Decimal(1), plan.price)
    further = _EXACT.subtract(used_units, plan.included_units)
    if further <= 0:
        return (fee,)
    return fee, Line("Further units", further, plan.unit_price)


def total(lines: tuple[Line, ...]) -> Decimal:
    """Add up the lines' amounts; two places."""
    added = Decimal("0.00")
    for line in lines:
        added = _EXACT.add(added, line.amount)
    return added
