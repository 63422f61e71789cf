"""The jobs that the soak runs, as the text of a module, in as many versions as there are numbers.

What becomes of an account is written in its id; `expected` says what may, for the checker:

- `plain` and `slow` succeed; `nothing` writes an effect and says that there was nothing to do, which undoes it;
- `retry` fails twice and succeeds; `later` asks once for another try; `giveup` fails until it is mended;
- `once` ends its worker with some occurrences, a single time; `poison` always does.
"""

import random

MINUTE_JOBS = ("each-minute", "chunks-each-minute", "sets-each-minute", "charges-each-minute")
NIGHT_JOBS = ("read-at-night", "batches-at-night", "sets-at-night", "charges-at-night", "threads-at-night")
POISONED_JOB = "poison-at-night"
JOBS = (*MINUTE_JOBS, *NIGHT_JOBS, POISONED_JOB)
OUTSIDE_JOBS = frozenset({"charges-each-minute", "charges-at-night"})

ACCOUNTS = (
    *(f"plain-{number:02d}" for number in range(10)),
    *(f"slow-{number}" for number in range(3)),
    *(f"retry-{number}" for number in range(3)),
    *(f"later-{number}" for number in range(2)),
    *(f"nothing-{number}" for number in range(2)),
    *(f"giveup-{number}" for number in range(2)),
    "once-0",
)
POISON = "poison-0"
TABLES = """
create table account (id text primary key);
create table effect (
    account text not null, occurrence text not null,
    worker text not null default current_setting('application_name'),
    txid bigint not null default pg_current_xact_id()::text::bigint);
"""

_TEXT = """
# Version {version}.
import json
import os
import random
import socket
import time
import zlib
from pathlib import Path

import anyio

from shared.job import *
from shared.job import AccountAt, Backoff, Handled

HERE = Path(__file__).parent
INSERT = "insert into effect (account, occurrence) values ($1, $2)"
ORDINARY = "select id as account from account where id <> 'poison-0'"
EVERY_ACCOUNT = "select id as account from account"


def mended():
    return (HERE / "mended").exists()


def dies(call):
    kind = call.account.split("-")[0]
    if kind == "poison":
        return True
    if kind != "once" or zlib.crc32(f"{{call.occurrence}} {{call.account}}".encode()) % 4:
        return False
    mark = HERE / f"died {{call.occurrence}} {{call.account}}".replace(":", ".")
    if mark.exists():
        return False
    mark.touch()
    return True


def judge(call):
    kind = call.account.split("-")[0]
    if dies(call):
        os.abort()
    if kind == "retry" and call.attempt <= 2:
        raise ValueError(f"failure {{call.attempt}}")
    if kind == "later" and call.attempt == 1:
        raise RetryLater("not yet", after=seconds(1.5))
    if kind == "giveup" and not mended():
        raise GiveUp("no tax id")
    if kind == "nothing":
        raise NothingToDo("already done")


async def one(call):
    await call.connection.execute(INSERT, call.account, str(call.occurrence))
    if call.account.startswith("slow"):
        await call.connection.execute("select pg_sleep(0.2)")
    judge(call)


def thread(call):
    call.connection.execute(INSERT, call.account, str(call.occurrence))
    if call.account.startswith("slow"):
        time.sleep(0.2)
    judge(call)


async def chunk(call):
    failed, nothing = {{}}, []
    for account in call.accounts:
        kind = account.split("-")[0]
        if kind == "giveup" and not mended():
            failed[account] = "no tax id"
        elif kind == "nothing":
            nothing.append(account)
        elif kind == "retry" and random.random() < 0.15:
            failed[account] = "by chance"
    done = [account for account in call.accounts if account not in failed and account not in nothing]
    await call.connection.execute(
        "insert into effect (account, occurrence) select unnest($1::text[]), $2", done, str(call.occurrence))
    if any(account.startswith("slow") for account in done):
        await call.connection.execute("select pg_sleep(0.1)")
    return Handled(done=done, failed=failed, nothing_to_do=nothing)


PROVIDER = ("127.0.0.1", int((HERE / "provider").read_text()))


def asked(call):
    asked = {{"key": call.key, "account": call.account, "occurrence": str(call.occurrence)}}
    return json.dumps(asked).encode() + b"\\n"


def judged(call, answer):
    if b"charged" not in answer:
        raise ConnectionError("the provider did not answer" if not answer else answer.decode())
    return {{"charge": call.key[:8]}}


async def charge(call):
    if call.account.split("-")[0] in ("nothing", "once", "poison", "giveup", "later"):
        judge(call)
    stream = await anyio.connect_tcp(*PROVIDER)
    async with stream:
        await stream.send(asked(call))
        answer = await stream.receive()
    if call.account.startswith("slow"):
        await anyio.sleep(0.3)
    judge(call)
    return judged(call, answer)


def charge_in_thread(call):
    if call.account.split("-")[0] in ("nothing", "once", "poison", "giveup", "later"):
        judge(call)
    with socket.create_connection(PROVIDER, timeout=4) as connection:
        connection.sendall(asked(call))
        answer = connection.recv(1000)
    if call.account.startswith("slow"):
        time.sleep(0.3)
    judge(call)
    return judged(call, answer)


async def numbers(call):
    accounts = {accounts!r}
    for number in range(int(call.cursor or 0), len(accounts)):
        await anyio.sleep(0.04)
        yield AccountAt(accounts[number], str(number + 1))


def job(name, schedule, handler, *, accounts=SqlAccounts(ORDINARY, page_size={page_size})):
    return Job(
        name,
        schedule=Cron(schedule),
        accounts=accounts,
        handler=handler,
        decisions=Decisions(
            catch_up="latest",
            catch_up_within=hours(24 * 365 * 30),
            overlap="skip",
            start_within=minutes(10),
            finish_within=hours(3),
        ),
        max_tries={max_tries},
        backoff=Backoff(first=seconds(0.3), limit=seconds(2)),
    )


FAR = "{far}"
QUICK = seconds(5)
jobs = [
    job("each-minute", "{minute}", PerAccount(one, timeout=QUICK)),
    job("chunks-each-minute", "* * * * *", PerAccount(one, timeout=QUICK, chunk_size={chunk_size})),
    job("sets-each-minute", "{minute}", SetBased(chunk, timeout=QUICK, chunk_size={chunk_size})),
    job("charges-each-minute", "* * * * *", Outside(charge, key_valid_for=hours(24), timeout=QUICK)),
    job("read-at-night", FAR, PerAccount(one, timeout=QUICK),
        accounts=GeneratedAccounts(numbers, page_size={page_size})),
    job("batches-at-night", FAR, PerAccount(one, timeout=QUICK, settle="batched")),
    job("sets-at-night", FAR, SetBased(chunk, timeout=QUICK, chunk_size={chunk_size})),
    job("charges-at-night", FAR, Outside(charge_in_thread, key_valid_for=hours(24), timeout=QUICK)),
    job("threads-at-night", FAR, PerAccount(thread, timeout=QUICK, chunk_size={chunk_size})),
    job("poison-at-night", FAR, PerAccount(one, timeout=QUICK, chunk_size=4),
        accounts=SqlAccounts(EVERY_ACCOUNT, page_size={page_size})),
]
"""
MINUTES = ("* * * * *", "* * * * *", "*/2 * * * *", "1-59/2 * * * *")


def module_text(version: int, far: str) -> str:
    """Give the module's text in a version; `far` is the schedule of the jobs whose nights the soak lets fall itself."""
    chance = random.Random(f"matins soak version {version}")
    return _TEXT.format(
        version=version,
        far=far,
        accounts=ACCOUNTS,
        minute="* * * * *" if version == 0 else chance.choice(MINUTES),
        page_size=7 if version == 0 else chance.randint(3, 12),
        chunk_size=5 if version == 0 else chance.randint(2, 8),
        max_tries=8 if version == 0 else chance.randint(7, 9),
    )
