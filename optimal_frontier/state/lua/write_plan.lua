-- Writes what the planner says of runs of slots: planned rates, over exactly the slots that it read, or what it commits to.
-- ARGV  fence, column group (plan, committed, bought and others), then per run of slots: chunk, first slot within it, bytes
-- Returns  1, or 0 if another planner has taken over. O(bytes); idempotent.
if redis.call('HGET', P .. 'meta', 'fence') ~= ARGV[1] then return 0 end
for i = 3, #ARGV, 3 do
  redis.call('SETRANGE', P .. ARGV[2] .. ':' .. ARGV[i], tonumber(ARGV[i + 1]) * WIDTH[ARGV[2]], ARGV[i + 2])
end
return 1
