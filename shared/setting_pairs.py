"""What settings have to say together: values that are valid each, and not beside one another. Pure."""

from collections.abc import Mapping
from typing import Any

from shared.setting_names import PREFIX
from shared.setting_values import OFF

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def faults_together(values: Mapping[str, Any], sources: Mapping[str, str]) -> list[str]:
    """Give a fault for each pair of settings that cannot be; `sources` are the variables that `values` were read of."""
    variable = PREFIX + "CONSOLE_ADDRESS"
    # Where who may sign in cannot be read, that is nobody: it is told beside the fault of that.
    problem = console_problem(values["console_address"] or OFF, signs_in=bool(values["console_access"]))
    return [f"{variable} is {sources[variable][:80]!r}: valid is {problem}"] if problem else []


def console_problem(address: tuple[str, int], *, signs_in: bool) -> str:
    """Say where a console may answer if nobody `signs_in` there and `address` is no such place; else give ''."""
    if signs_in or address == OFF or address[0] in _LOOPBACK:
        return ""
    return "a loopback address as 127.0.0.1:8082 where MATINS_CONSOLE_ACCESS lets nobody sign in: nobody else may look"
