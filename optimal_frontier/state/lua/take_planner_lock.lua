-- Takes or renews the planner's lock, or gives it back.
-- ARGV  owner, time to live (ms; 0: it is given back), token that the owner has (-1: none): it stays if nobody took the lock meanwhile
-- Returns  the fencing token (or 1: given back), 0: another holds the lock. O(1). Tokens are times (us): they rise, whatever was lost.
local holder, fence = call('GET', P .. 'planner'), tonumber(call('GET', P .. 'fence') or 0)
if holder and holder ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then return call('DEL', P .. 'planner') end
call('SET', P .. 'planner', ARGV[1], 'PX', ARGV[2])
if not holder and fence ~= tonumber(ARGV[3] or -1) then fence = max(fence + 1, (select(2, clock(read_state())))) end
call('SET', P .. 'fence', format('%d', fence))
return fence
