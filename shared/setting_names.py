"""Variables that look like settings and are none: each is told with the name that was probably meant. Pure."""

import difflib
import re
from collections.abc import Collection, Mapping

PREFIX = "MATINS_"
# Read by the demo, the tests and the image, not by the processes.
FOREIGN = re.compile(r"MATINS_(TEST|DEMO|EXAMPLE)_")
# One for each login that a job names: read by the workers that run the job.
LOGIN = re.compile(r"MATINS_LOGIN_URL_[A-Z0-9_]+")


def unknown_names(sources: Mapping[str, str], known: Collection[str]) -> list[str]:
    """Give a fault for each variable that is not `known` and looks as if it should be."""
    problems = []
    for variable in sorted(sources):
        near_miss = difflib.get_close_matches(variable, known, 1, 0.85) if not variable.startswith(PREFIX) else []
        if near_miss and variable.partition("_")[0] != PREFIX.rstrip("_"):
            problems.append(f"{variable} is not a setting; did you mean {near_miss[0]}?")
        if (
            variable.startswith(PREFIX)
            and variable not in known
            and not (FOREIGN.match(variable) or LOGIN.match(variable))
        ):
            names = [name.removeprefix(PREFIX) for name in known]
            near = difflib.get_close_matches(variable.removeprefix(PREFIX), names, 1, 0.6)
            hint = f"did you mean {PREFIX}{near[0]}?" if near else f"the README lists every {PREFIX}… variable"
            problems.append(f"{variable} is not a setting; {hint}")
    return problems
