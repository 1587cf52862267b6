-- Takes or renews the planner's lock.
-- ARGV  owner, time to live (ms)
-- Returns  the fencing token, or 0 if another holds the lock. O(1).
local holder = call('GET', P .. 'planner')
if holder and holder ~= ARGV[1] then return 0 end
call('SET', P .. 'planner', ARGV[1], 'PX', ARGV[2])
if holder then return tonumber(call('GET', P .. 'fence')) end
return call('INCR', P .. 'fence')
