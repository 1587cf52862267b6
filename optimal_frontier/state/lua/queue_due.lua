-- Queues pages that fall due before the horizon, by the deadline that the columns give at this moment.
-- ARGV  fence, horizon (s), slots and generations as packed unsigned 32-bit pairs
-- Returns  the number queued, or -1 if another planner has taken over. O(log n) a page; idempotent.
if redis.call('HGET', P .. 'meta', 'fence') ~= ARGV[1] then return -1 end
local now, queued, hosts, live = clock(), 0, {}, read_live()
local limit = now + tonumber(ARGV[2])
for at = 1, #ARGV[3], 8 do
  local slot, generation = struct.unpack('<I4I4', ARGV[3], at)
  local p = read_page(slot)
  if p.state == ACTIVE and p.generation == generation and redis.call('HEXISTS', P .. 'leases', slot) == 0 then
    local s = parse_seen(read_raw('seen', slot))
    -- One that waits for its first visit may have been seen under another name.
    if s.visits > 0 and s.attempts > 0 then
      local _, due = deadline_of(slot, p, s, parse_plan(read_raw('plan', slot)), live, now)
      if due <= limit then
        redis.call('ZADD', P .. 'due:' .. p.host, number(due), slot)
        queued = queued + 1
      else
        redis.call('ZREM', P .. 'due:' .. p.host, slot)
      end
      hosts[p.host] = true
    end
  end
end
for host in pairs(hosts) do sync_host(tostring(host)) end
return queued
