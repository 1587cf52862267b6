-- Notes contents that are no page's own (block pages, soft 404s), and tells which there are.
-- ARGV  names to note: host, blank, fingerprint (32 hexadecimal digits)
-- Returns  a flat list: name, 1 (flagged) or 0 (it was for so long that it passes for the pages' own). O(n log n), n <= MOST; idempotent.
local FLAGGED_S, REMEMBERED_S, MOST = 7 * 86400, 30 * 86400, 1000
if #ARGV == 0 and redis.call('EXISTS', P .. 'flagged') == 0 then return {} end
local now = clock()
for _, name in ipairs(ARGV) do redis.call('ZADD', P .. 'flagged', 'NX', string.format('%.3f', now), name) end
redis.call('ZREMRANGEBYSCORE', P .. 'flagged', '-inf', now - REMEMBERED_S)
redis.call('ZREMRANGEBYRANK', P .. 'flagged', 0, -MOST - 1)
local reply = redis.call('ZRANGE', P .. 'flagged', 0, -1, 'WITHSCORES')
for i = 2, #reply, 2 do reply[i] = tonumber(reply[i]) > now - FLAGGED_S and 1 or 0 end
return reply
