"""The jobs that are measured: one idempotent insert for each account, in the shapes that a job can have."""

from shared.job import (
    AccountCall,
    ChunkCall,
    Cron,
    Decisions,
    Handled,
    Handler,
    Job,
    PerAccount,
    SetBased,
    SqlAccounts,
    hours,
)

ROLE = "matins_bench"
INVOICE = "insert into bench.invoice (account, period, amount) values ($1, '2026-08', 100) on conflict do nothing"
INVOICES = """
insert into bench.invoice (account, period, amount)
select account, '2026-08', 100 from unnest($1::text[]) as given (account)
    on conflict do nothing
returning account"""
DECISIONS = Decisions(
    catch_up="latest",
    catch_up_within=hours(20),
    overlap="skip",
    start_within=hours(1),
    finish_within=hours(3),
)


async def invoice(call: AccountCall) -> None:
    """Write one account's invoice."""
    await call.connection.execute(INVOICE, call.account)


async def invoices(call: ChunkCall) -> Handled:
    """Write the invoices of a chunk in one statement."""
    return Handled(done=[row["account"] for row in await call.connection.fetch(INVOICES, list(call.accounts))])


def _job(name: str, handler: Handler) -> Job:
    # Due on New Year's Day: the benchmark puts the occurrences that it needs beside those of the schedule.
    return Job(
        name,
        schedule=Cron("0 0 1 1 *"),
        accounts=SqlAccounts("select id as account from bench.account"),
        handler=handler,
        decisions=DECISIONS,
    )


jobs = [
    _job("one-account-transaction", PerAccount(invoice, role=ROLE)),
    _job("one-account-batched", PerAccount(invoice, role=ROLE, settle="batched")),
    _job("chunk-100-run", PerAccount(invoice, role=ROLE, chunk_size=100)),
    _job("chunk-100-set", SetBased(invoices, role=ROLE, chunk_size=100)),
]
