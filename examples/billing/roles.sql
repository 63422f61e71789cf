-- Roles for the jobs, which MATINS_EXAMPLE_ROLES=yes has them ask for; the account sources run under them as well.
-- `migrate` lets the services' groups take them. Whoever may not make roles finds them made, or is told.
do $$
begin
    if to_regrole('job_invoice') is null then create role job_invoice nologin; end if;
exception when duplicate_object or unique_violation then null;
end
$$;
do $$
begin
    if to_regrole('job_usage') is null then create role job_usage nologin; end if;
exception when duplicate_object or unique_violation then null;
end
$$;

grant usage on schema billing to job_invoice, job_usage;
grant select on billing.account, billing.usage_event to job_invoice, job_usage;
grant select on billing.plan to job_invoice;
grant select, insert on billing.invoice, billing.invoice_line to job_invoice;
grant select, insert, update on billing.usage_total to job_usage;
grant insert on billing.touch to job_invoice, job_usage;
