-- Writes planned rates back over exactly the slots that the planner read.
-- ARGV  fence, then per run of slots: chunk, first slot within it, bytes (24 a slot)
-- Returns  1, or 0 if another planner has taken over. O(bytes).
if redis.call('HGET', P .. 'meta', 'fence') ~= ARGV[1] then return 0 end
for i = 2, #ARGV, 3 do
  redis.call('SETRANGE', P .. 'plan:' .. ARGV[i], tonumber(ARGV[i + 1]) * WIDTH.plan, ARGV[i + 2])
end
return 1
