-- Gives the planner's lock back, if the owner holds it.
-- ARGV  owner
-- Returns  1 or 0. O(1).
if redis.call('GET', P .. 'planner') == ARGV[1] then return redis.call('DEL', P .. 'planner') end
return 0
