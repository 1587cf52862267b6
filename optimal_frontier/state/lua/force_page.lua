-- Makes a page due now: it has earned its visit. A retired page comes back.
-- ARGV  fingerprint
-- Returns  1 (due), 2 (already in flight or waiting for its first visit), 0 (not known). O(log n).
local slot = redis.call('HGET', P .. 'ids', ARGV[1])
if not slot then return 0 end
local now, p, s = clock(), read_page(tonumber(slot)), parse_seen(read_raw('seen', tonumber(slot)))
if redis.call('HEXISTS', P .. 'leases', slot) == 1 or s.attempts == 0 then return 2 end
if p.state == DONE then return 2 end
if p.state == RETIRED then
  p.state = ACTIVE
  write_page(tonumber(slot), p)
  redis.call('HINCRBY', P .. 'stats', 'retired', -1)
end
-- By price, or by update times, nothing else tells it from a page that has waited for long.
s.carry, s.settled, s.failures, s.gone = (read_live() or timetable_of(slot)) and FORCED or 1, now, 0, 0
if s.visits == 0 then s.last_attempt = 0 end
write_seen(tonumber(slot), s)
redis.call('HDEL', P .. 'failed', slot)
redis.call('ZADD', P .. 'due:' .. p.host, string.format('%.6f', math.max(now, s.last_attempt + p.gap)), slot)
sync_host(tostring(p.host))
return 1
