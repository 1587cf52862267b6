-- Pays for fetches that are no dispatch (redirects, retries, robots.txt), below zero if need be.
-- ARGV  number of fetches, and "<dddd": budget (1/s; 0: none), most tokens, and what the time should be, as in dispatch
-- Returns  1. O(1).
local n, d, budget, bucket, expected, within = tonumber(ARGV[1]), read_state(), up('<dddd', ARGV[2])
call('HINCRBY', P .. 'stats', 'extra_fetches', n)
if budget <= 0 then return 1 end
local now, told = clock(d, expected, within)
if d[${D_AT}] == 0 then d[${D_AT}] = now end
d[${D_TOKENS}] = math.min(bucket, d[${D_TOKENS}] + budget * (now - d[${D_AT}]) / 1e6) - n
d[${D_AT}], d[${D_CLOCK}] = now, told
write_state(d)
return 1
