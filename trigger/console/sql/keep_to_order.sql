-- Has what follows in this transaction read in the order of an index: a page needs some of an order, and to the planner it
-- may look cheaper to read everything and to sort it, where the rows lie in another order than their keys. What it is told
-- to avoid counts as dear, for which it would compile the little that is done.
select set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true);
