-- Reads the last version of each system that began to run, of the last markers, $1 at most.
select distinct on (d.system) d.system, d.version, d.at
  from (select system, version, at, id from matins.deploy order by at desc limit $1) d
 order by d.system, d.at desc, d.id desc;
