"""A guard against mistakes, no wall: a handler's statement must not end our transaction or change its role.

SQL can hide what it does. What gets through is noticed at the savepoint; but by then a commit has made the effects of
accounts durable that had not been settled.
"""

import re

_NOT_CODE = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$|--[^\n]*|/\*.*?\*/", re.DOTALL
)
_TRANSACTION_CONTROL = re.compile(
    r"\s*(begin|start\s+transaction|commit|end|rollback(?!\s+(?:work\s+|transaction\s+)?to\b)|abort|prepare\s+transaction"
    r"|reset\s+(?:role|all|session\s+authorization)|discard\s+\w+|deallocate\s+(?:prepare\s+)?all|set\s+(?:session\s+|local\s+)?(?:role|session\s+authorization))\b",
    re.IGNORECASE,
)


def refuse_transaction_control(query: str) -> None:
    """Raise RuntimeError when a statement of the query, or a later one behind a semicolon, controls the transaction."""
    for part in _NOT_CODE.sub(" ", query).split(";"):
        if match := _TRANSACTION_CONTROL.match(part):
            problem = f"{match[1]!r} is not for a handler: the transaction and its role belong to the ledger's settle"
            raise RuntimeError(problem)
