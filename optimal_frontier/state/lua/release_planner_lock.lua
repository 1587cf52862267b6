-- Gives the planner's lock back, if the owner holds it.
-- ARGV  owner
-- Returns  1 or 0. O(1).
return call('GET', P .. 'planner') == ARGV[1] and call('DEL', P .. 'planner') or 0
