-- Pays for fetches that are no dispatch (redirects, retries, robots.txt), below zero if need be.
-- ARGV  budget (1/s; 0: none), number of fetches, and what the time should be, as in dispatch ("<dd", or left out)
-- Returns  1. O(1).
local budget, n, d = tonumber(ARGV[1]), tonumber(ARGV[2]), read_state()
call('HINCRBY', P .. 'stats', 'extra_fetches', n)
if budget <= 0 then return 1 end
local now, told = clock(d, up('<dd', ARGV[3] or NONE))
if d[${D_AT}] == 0 then d[${D_AT}] = now end
d[${D_TOKENS}] = math.min(math.max(0.1 * budget, math.min(1.9, 1 + 0.1 * budget)), d[${D_TOKENS}] + budget * (now - d[${D_AT}]) / 1e6) - n
d[${D_AT}], d[${D_CLOCK}] = now, told
write_state(d)
return 1
