-- Finds the last position of the chain before the first row that is to be kept; its hash is where what is left begins. Null when
-- nothing goes. Rows that are not sealed stay. $1 before this instant, $2 the position behind which the chain begins.
with first_kept as (
    select c.position
      from matins.audit_chain c
      join matins.audit a on a.id = c.audit_id
     where a.at >= $1 and c.position > $2
     order by c.position
     limit 1)
select c.position, c.hash, c.position - $2::bigint as rows
  from matins.audit_chain c
 where c.position > $2
   and c.position < coalesce((select position from first_kept), 9223372036854775807)
 order by c.position desc
 limit 1;
