"""One call, from its bytes to its answer: who calls, whether they may, how often, and what they ask for.

Every call is counted by its outcome, and one that is refused is in the log too, at a bounded rate. Nothing of it is
written to the database unless it is answered with an occurrence.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TypeAlias

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from shared import clock
from shared.api_callers import Caller
from shared.errors import MatinsError
from shared.logs import FailureLog, logger
from shared.postgres import Database, is_transient
from shared.telemetry import metrics
from trigger.api_answers import STATUS, UNPROVEN, named, problem, status_of
from trigger.api_limits import Rate
from trigger.api_request import Gate, NotTaken, Proven, read_asked, read_body, read_check_in
from trigger.check_in import CheckIn, check_in
from trigger.claim_outcome import Claimant
from trigger.identity_tokens import Unproven
from trigger.issuer_keys import KeysUnavailable
from trigger.outside_call import Answered, Call, Declined, answer
from trigger.signatures import Unsigned

ANSWER_SECONDS = 20.0
AGAIN_SECONDS = 5.0
UNPROVEN_A_MINUTE = 120
MINUTE = 60.0
_log = logger(__name__)

_Allowed: TypeAlias = Callable[[Caller], AbstractSet[str]]
_Decide: TypeAlias = Callable[[Proven, str, bytes, str], Awaitable[Answered | Declined]]


@dataclass(slots=True)
class _Seen:
    """What is known of a call so far, for the log and the metric; the job only once its caller may name it."""

    caller: str = ""
    job: str = ""
    proof: str = ""


@dataclass(slots=True)
class Calls:
    """Answers calls; for the event loop of the endpoint's thread."""

    gate: Gate
    database: Database
    claimant: Claimant
    monotonic: Callable[[], float] = clock.monotonic
    _rates: Rate = field(init=False)
    _unproven: Rate = field(init=False)
    _failures: FailureLog = field(init=False)

    def __post_init__(self) -> None:
        """Begin to count."""
        self._rates = Rate(UNPROVEN_A_MINUTE, MINUTE, self.monotonic)
        self._unproven = Rate(UNPROVEN_A_MINUTE, MINUTE, self.monotonic)
        self._failures = FailureLog(_log)

    async def occurrences(self, request: Request) -> Response:
        """Answer `POST /v1/jobs/{job}/occurrences`."""
        return await self._taken(request, lambda caller: caller.jobs, self._called)

    async def check_ins(self, request: Request) -> Response:
        """Answer `POST /v1/check-ins/{job}`."""
        return await self._taken(request, lambda caller: caller.check_ins, self._checked_in)

    async def _taken(self, request: Request, allowed: _Allowed, decide: _Decide) -> Response:
        seen = _Seen()
        try:
            with anyio.fail_after(ANSWER_SECONDS):
                decided = await self._decided(request, seen, allowed, decide)
        except NotTaken as error:
            decided = Declined(error.outcome, error.detail, error.again)
        except (Unsigned, Unproven) as error:
            return self._refused(str(error), request, seen)
        except Exception as error:  # noqa: BLE001 - whoever calls is answered, and what broke is in the log
            decided = self._broken(error, seen)
        if isinstance(decided, Answered):
            return self._answered(decided, seen)
        if status_of(decided.outcome) == UNPROVEN:
            return self._refused(decided.outcome, request, seen)
        self._tell(decided.outcome, request, seen)
        return problem(status_of(decided.outcome), decided.detail, decided.again)

    async def elsewhere(self, request: Request, error: Exception) -> Response:
        """Answer for another path, or for another method than POST."""
        is_method = isinstance(error, HTTPException) and error.status_code == STATUS["method"]
        outcome = "method" if is_method else "path"
        self._tell(outcome, request, _Seen())
        return problem(status_of(outcome))

    def report(self) -> None:
        """Write how many refused calls were not shown."""
        self._failures.report()

    async def _decided(self, request: Request, seen: _Seen, allowed: _Allowed, decide: _Decide) -> Answered | Declined:
        job = str(request.path_params["job"])
        body = await read_body(request)
        headers: dict[str, list[str]] = defaultdict(list)
        for name, value in request.headers.items():
            headers[name].append(value)
        proven = await self.gate.proven(headers, body, job)
        seen.caller, seen.proof = proven.caller.name, proven.proof
        self._allow(proven, job, allowed)
        seen.job = job
        return await decide(proven, job, body, request.headers.get("content-type", ""))

    async def _called(self, proven: Proven, job: str, body: bytes, media_type: str) -> Answered | Declined:
        asked = read_asked(body, media_type)
        _same_job(asked.job, job)
        call = Call(proven.caller.name, job, proven.proof, asked.scheduled_at, proven.delivery)
        async with self.database.session() as session:
            return await answer(session, call, self.claimant)

    async def _checked_in(self, proven: Proven, job: str, body: bytes, media_type: str) -> Answered | Declined:
        asked = read_check_in(body, media_type)
        _same_job(asked.job, job)
        reported = CheckIn(
            job,
            asked.event,
            proven.caller.name,
            proven.proof,
            self.claimant.instance,
            scheduled_at=asked.scheduled_at,
            run=asked.run,
            message=asked.message,
            delivery=proven.delivery,
        )
        async with self.database.session() as session:
            return await check_in(session, reported)

    def _broken(self, error: Exception, seen: _Seen) -> Declined:
        """Say what is away; anything else is a fault of ours."""
        if isinstance(error, KeysUnavailable):
            return Declined("issuer_away", again=AGAIN_SECONDS)
        if is_transient(error) or isinstance(error, MatinsError):
            return Declined("database", again=AGAIN_SECONDS)
        _log.exception("a call failed", job=seen.job, caller=seen.caller)
        return Declined("error")

    def _allow(self, proven: Proven, job: str, allowed: _Allowed) -> None:
        """See that a caller may call, now and for this job. Raises NotTaken."""
        wait = self._rates.wait(proven.caller.name, proven.caller.rate)
        if wait:
            raise NotTaken("rate", again=wait)
        if job not in allowed(proven.caller):
            raise NotTaken("forbidden")

    def _answered(self, answered: Answered, seen: _Seen) -> Response:
        kinds = {"claimed": answered.won, "repeated": answered.repeated, "waits": answered.waits}
        outcome = next((kind for kind, is_it in kinds.items() if is_it), "deduplicated")
        metrics.calls.add(1, job=seen.job, outcome=outcome)
        occurrence = str(answered.identity)
        _log.info("called", job=seen.job, occurrence=occurrence, caller=seen.caller, proof=seen.proof, outcome=outcome)
        accepted = answered.won or answered.waits
        return named(answered.identity, answered.id, answered.state, accepted=accepted)

    def _refused(self, reason: str, request: Request, seen: _Seen) -> Response:
        """Refuse who has proven nothing, always in the same words; too many of them are told to come less often."""
        wait = self._unproven.wait("")
        self._tell(f"unproven_{reason}", request, seen)
        return problem(429, again=wait) if wait else problem(UNPROVEN)

    def _tell(self, outcome: str, request: Request, seen: _Seen) -> None:
        metrics.calls.add(1, job=seen.job, outcome=outcome)
        address = request.client.host if request.client else ""
        self._failures.failure(
            "a call was refused",
            error_class=outcome,
            job=seen.job,
            caller=seen.caller,
            proof=seen.proof,
            address=address,
        )


def _same_job(named: str | None, job: str) -> None:
    """See that the body, which is what was signed, speaks of the path's job. Raises NotTaken."""
    if named not in {None, job}:
        raise NotTaken("other_job", "the body names another job")
