-- Reads the keys of the queues that jobs have, for as long as they are not retired.
select distinct j.definition ->> 'queue' as queue
  from matins.job j
 where j.retired_at is null and j.definition ->> 'queue' is not null
 order by queue;
