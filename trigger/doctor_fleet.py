"""What `doctor` sees of the processes that live: whether each job is planned, can be run, and by code of one kind."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shared.differences import Difference
from shared.job import Job
from trigger.doctor_database import Looked
from trigger.doctor_finding import Finding, fail, ok, warn

Instances = list[dict[str, Any]]


def check_fleet(looked: Looked, declared: Mapping[str, Job]) -> Iterator[Finding]:
    """Give the findings about what was read from the database."""
    triggers = [one for one in looked.instances if one["kind"] == "trigger"]
    workers = [one for one in looked.instances if one["kind"] == "worker"]
    for kind, live in (("triggers", triggers), ("workers", workers)):
        told = f"{len(live)} live" + (f": {', '.join(one['id'][:8] for one in live)}" if live else "")
        yield ok(kind, told) if live else fail(kind, told, f"start one: `python -m {kind.removesuffix('s')} serve`")
    elsewhere = {job["name"] for job in looked.jobs if job["definition"]["coordination"] == "elsewhere"}
    names = sorted(({job["name"] for job in looked.jobs} | set(declared)) - elsewhere)
    for name in names if workers else ():
        yield _handler(name, workers)
    for job in looked.jobs:
        yield from _revision(job, triggers)
        if job["definition"]["coordination"] == "leader" and triggers:
            yield _leader(job["name"], looked.leaders.get(job["name"]), triggers)
        if declared and job["name"] not in declared:
            told = f"{job['name']} is known to the database, and not declared here"
            ended = f"`python -m trigger retire {job['name']} --reason …` skips what waits"
            yield warn("vanished", told, f"declare it again; if it has ended for good, {ended}")
    yield from _definitions(looked.differences)
    for name, meaning in (("version", "release"), ("tzdata_version", "tzdata")):
        yield _same(meaning, {one[name] for one in looked.instances})


def _handler(job: str, workers: Instances) -> Finding:
    """See which live workers can call a job's handler: they say so themselves."""
    able = [one for one in workers if job in one["jobs"] and one["jobs"][job] is None]
    reasons = sorted({str(one["jobs"][job]) for one in workers if one["jobs"].get(job) is not None})
    told = f"{job}: {len(able)} of {len(workers)} live workers can run it"
    if reasons:
        told += f"; of the others: {'; '.join(reasons)}"
    if without := [one["id"][:8] for one in workers if job not in one["jobs"]]:
        told += f"; not declared by {', '.join(without)}"
    if not able:
        return fail(
            "handlers", told, "deploy workers that have its code and its dependencies, and do what they ask for"
        )
    if reasons:
        return warn("handlers", told, "give every worker that declares it the code and the dependencies")
    return ok("handlers", told)


def _revision(job: dict[str, Any], triggers: Instances) -> Iterator[Finding]:
    """See whether the live triggers plan with the current definition."""
    held = [one["jobs"][job["name"]] for one in triggers if job["name"] in one["jobs"]]
    if triggers and not held:
        told = f"{job['name']}: no live trigger plans revision {job['revision']}"
        yield fail("revisions", told, "deploy triggers that declare it as it is now")
    elif any(revision != job["revision"] for revision in held):
        told = f"{job['name']}: live triggers hold revisions {sorted(set(held))}, {job['revision']} is current"
        yield warn("revisions", told, "finish the rolling deploy")
    elif held:
        yield ok("revisions", f"{job['name']}: revision {job['revision']} in {len(held)} live triggers")


def _leader(job: str, leader: dict[str, Any] | None, triggers: Instances) -> Finding:
    """See whether a live trigger leads a job that one must lead."""
    if leader is None:
        told = f"{job}: no trigger leads it, so nothing of it is claimed"
        return fail("leader", told, "look again in a few seconds; then into the triggers' logs and /readyz")
    told = f"{job}: led by {leader['instance'][:8]}, epoch {leader['epoch']}"
    if leader["instance"] not in {one["id"] for one in triggers}:
        return warn("leader", f"{told}, which is silent", "another leads when its lead has run out")
    return ok("leader", told)


def _definitions(differences: Sequence[Difference]) -> Iterator[Finding]:
    """See whether all live processes declare each job alike."""
    for one in differences:
        yield warn("definitions", str(one), "finish the rolling deploy, or end the processes of the former one")
    if not differences:
        yield ok("definitions", "all live processes declare each job alike")


def _same(meaning: str, found: set[str]) -> Finding:
    told = ", ".join(sorted(found)) or "no live process"
    if len(found) > 1:
        return warn(meaning, f"live processes differ: {told}", "finish the rolling deploy")
    return ok(meaning, told)
