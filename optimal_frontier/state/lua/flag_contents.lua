-- Notes contents that are no page's own (block pages, soft 404s) and changes of templates, and tells which there are.
-- ARGV  seconds for which one is flagged, seconds for which it is remembered, most of them; then names to note
-- Returns  names that are flagged, and those that were for so long that they pass for the pages' own. O(n log n); idempotent.
local key, now, new = P .. 'flagged', clock(read_state()) / 1e6, {'NX'}
for i = 4, #ARGV do new[2 * i - 6], new[2 * i - 5] = string.format('%.3f', now), ARGV[i] end
if new[2] then call('ZADD', key, unpack(new)) end
call('ZREMRANGEBYSCORE', key, '-inf', now - ARGV[2])
call('ZREMRANGEBYRANK', key, 0, -ARGV[3] - 1)
return {call('ZRANGEBYSCORE', key, '(' .. now - ARGV[1], '+inf'), call('ZRANGEBYSCORE', key, '-inf', now - ARGV[1])}
