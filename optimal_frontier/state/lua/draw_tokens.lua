-- Pays for fetches that are no dispatch (redirects, retries, robots.txt), below zero if need be.
-- ARGV  budget (1/s; 0: none), number of fetches, and what the time should be, as in dispatch ("<dd", or left out)
-- Returns  1. O(1).
local budget, n, d = tonumber(ARGV[1]), tonumber(ARGV[2]), read_state()
call('HINCRBY', P .. 'stats', 'extra_fetches', n)
if budget <= 0 then return 1 end
local now = (clock(d[1], up('<dd', ARGV[3] or NONE)))
if d[1] == 0 then d[1] = now end
d[2] = math.min(math.max(0.1 * budget, math.min(1.9, 1 + 0.1 * budget)), d[2] + budget * (now - d[1]) / 1e6) - n
d[1] = now
write_state(d)
return 1
