-- Gives back every right that a process holds, at its end; a lead of jobs keeps its row, and with it its epoch. $1 holder.
delete from matins.lease where holder = $1 and name not like 'leader:%';
