-- Keeps requests from a host for a while, beyond its delay; one that is held for longer already stays so.
-- ARGV  host, seconds, and what the time should be, as in dispatch ("<dd", or left out)
-- Returns  1, or 0 if the host is not known. O(1); idempotent.
local host = call('HGET', P .. 'hosts', ARGV[1])
if not host then return 0 end
local until_, told = (clock(read_state(), up('<dd', ARGV[3] or NONE))) + tonumber(ARGV[2]) * 1e6, call('HGET', P .. 'opens', pk('<I4', host))
local free, turn, waits = up(TURNS, (told or NONE) .. NONE)
if free < until_ then call('HSET', P .. 'opens', pk('<I4', host), pk(TURNS, until_, math.max(turn, until_), waits)) end
call('HINCRBY', P .. 'stats', 'host_holds', 1)
return 1
