-- Takes away the rows by which an account waits for its turn; a start that needs one writes it again. $1 account.
with forgotten as (
    delete from matins.account_lock k
     using matins.job j
     where k.job = j.name and k.account = $1
    returning 1)
select count(*) from forgotten;
