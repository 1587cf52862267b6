-- Takes or renews the planner's lock.
-- ARGV  owner, time to live (ms), the token that the owner has (-1: none): it stays, also of a lock that ran out and that nobody took since
-- Returns  the fencing token, or 0 if another holds the lock. O(1). Tokens rise, also on a server that has lost the last ones: times, in us.
local holder, fence = call('GET', P .. 'planner'), tonumber(call('GET', P .. 'fence') or 0)
if holder and holder ~= ARGV[1] then return 0 end
call('SET', P .. 'planner', ARGV[1], 'PX', ARGV[2])
if not holder and fence ~= tonumber(ARGV[3] or -1) then fence = math.max(fence + 1, (select(2, clock(read_state())))) end
call('SET', P .. 'fence', string.format('%d', fence))
return fence
