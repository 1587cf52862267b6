-- Adds to counters that no page or lease brings.
-- ARGV  name and number to add, of each
-- Returns  1. O(1) a counter; not idempotent.
for i = 1, #ARGV, 2 do call('HINCRBY', P .. 'stats', ARGV[i], ARGV[i + 1]) end
return 1
