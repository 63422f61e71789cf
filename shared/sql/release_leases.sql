-- Gives back every right that a process holds, at its end. $1 holder.
delete from matins.lease where holder = $1;
