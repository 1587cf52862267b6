-- Notes contents that are no page's own (block pages, soft 404s) and changes of templates, and tells which there are.
-- ARGV  seconds for which one is flagged, seconds for which it is remembered, most of them; then names to note
-- Returns  a flat list: name, 1 (flagged) or 0 (it was for so long that it passes for the pages' own). O(n log n); idempotent.
if #ARGV == 3 and call('EXISTS', P .. 'flagged') == 0 then return {} end
local now = clock(read_state()) / 1e6
for i = 4, #ARGV do call('ZADD', P .. 'flagged', 'NX', string.format('%.3f', now), ARGV[i]) end
call('ZREMRANGEBYSCORE', P .. 'flagged', '-inf', now - tonumber(ARGV[2]))
call('ZREMRANGEBYRANK', P .. 'flagged', 0, -tonumber(ARGV[3]) - 1)
local reply = call('ZRANGE', P .. 'flagged', 0, -1, 'WITHSCORES')
for i = 2, #reply, 2 do reply[i] = tonumber(reply[i]) > now - tonumber(ARGV[1]) and 1 or 0 end
return reply
