-- Says which process leads which job now, and until when if it does not renew that.
select substr(l.name, 8) as job, l.holder as instance, l.epoch, l.until
  from matins.lease l
 where l.name like 'leader:%' and l.until >= clock_timestamp()
 order by l.name;
