"""Who gets to run a job: the ways to choose from, and what goes with which."""

from datetime import timedelta
from typing import Any, Literal, get_args

from shared.declaration import Fault
from shared.every_worker import every_worker_faults
from shared.job_faults import duration_faults, duration_text, one_of
from shared.runs_elsewhere import NotHere

Coordination = Literal["claim", "leader", "external", "every", "elsewhere"]

LONGEST_REGION = 63


def coordination_faults(job: Any) -> tuple[Fault, ...]:
    """Check how a job's claimants are chosen, and its region with its delay."""
    choices = [one for one in get_args(Coordination) if one != "elsewhere"]
    faults = _elsewhere_faults(job) or one_of("coordination", job.coordination, choices) or every_worker_faults(job)
    if job.region == "" and job.region_delay == timedelta(0):
        return faults
    return (*faults, *_region_faults(job))


def _elsewhere_faults(job: Any) -> tuple[Fault, ...]:
    """Refuse what would make a job of code and accounts one that runs elsewhere: that has a declaration of its own."""
    told = {
        "coordination": (job.coordination == "elsewhere", "'elsewhere'"),
        "accounts": (isinstance(job.accounts, NotHere), "NotHere()"),
        "handler": (isinstance(job.handler, NotHere), "NotHere()"),
    }
    right = "RunsElsewhere(name, schedule, start_within=…, finish_within=…, heard_within=…) instead of Job"
    return tuple(Fault(place, f"is {written}", right) for place, (is_it, written) in told.items() if is_it)


def _region_faults(job: Any) -> tuple[Fault, ...]:
    region, delay = job.region, job.region_delay
    if not (isinstance(region, str) and 0 < len(region) <= LONGEST_REGION and region.isprintable()):
        return (Fault("region", f"is {region!r}", "a region's name, as MATINS_REGION of its triggers says it"),)
    faults = duration_faults("region_delay", delay, minimum=timedelta(seconds=1))
    if faults:
        return faults
    bound = getattr(job.decisions, "start_within", None)
    if isinstance(bound, timedelta) and delay >= bound:
        right = f"less than start_within, which is {duration_text(bound)}"
        faults += (Fault("region_delay", f"is {duration_text(delay)}", right),)
    if job.coordination != "claim":
        told = f"is given beside coordination={job.coordination!r}"
        faults += (Fault("region", told, 'coordination="claim": only there many triggers attempt'),)
    return faults
