-- Reads the first batch by which ids as large as this had been drawn, and a transaction that began after that: what began
-- later still cannot have drawn this id. Only batches of one server's time compare. $1 era, $2 id, $3 before this batch.
select s.begun_after::text as begun_after, s.position
  from matins.audit_seal s
 where s.era = $1 and not s.first_look and s.highest_id >= $2 and s.number < $3
 order by s.highest_id, s.number
 limit 1;
