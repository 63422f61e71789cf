-- Roles for the jobs, for `PerAccount(…, role="job_invoice")` and `SetBased(…, role="job_usage")`. The account sources
-- run under them as well. The services' own login must be a member: `grant job_invoice, job_usage to …`.
do $$
begin
    create role job_invoice nologin;
exception when duplicate_object or unique_violation then null;
end
$$;
do $$
begin
    create role job_usage nologin;
exception when duplicate_object or unique_violation then null;
end
$$;

grant usage on schema billing to job_invoice, job_usage;
grant select on billing.account, billing.usage_event to job_invoice, job_usage;
grant select on billing.plan to job_invoice;
grant select, insert on billing.invoice, billing.invoice_line to job_invoice;
grant select, insert, update on billing.usage_total to job_usage;
grant insert on billing.touch to job_invoice, job_usage;
