-- Keeps requests from a host for a while, beyond its delay; one that is held for longer already stays so.
-- ARGV  host, seconds
-- Returns  1, or 0 if the host is not known. O(1); idempotent.
local host = call('HGET', P .. 'hosts', ARGV[1])
if not host then return 0 end
local until_, told = clock(read_state()[1]) + tonumber(ARGV[2]) * 1e6, call('HGET', P .. 'opens', pk('<I4', host))
local free, turn = 0, 0
if told then free, turn = up('<dd', told) end
if free < until_ then call('HSET', P .. 'opens', pk('<I4', host), pk('<dd', until_, math.max(turn, until_))) end
call('HINCRBY', P .. 'stats', 'host_holds', 1)
return 1
