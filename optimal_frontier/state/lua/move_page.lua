-- Gives a page another identity: what it was called before becomes an alias. Where the new one is a page already, the two become one.
-- ARGV  fingerprint, its URL, then the new identity as one page of add_pages (14 values; priority and limits are not used),
--       1 if the page itself says so (rel=canonical), else 0
-- Returns  1 (moved), 2 (the new identity was a page already, which takes the old one's place), 0 (nothing to move: it is not a page, waits
--          for its first visit, or has moved before; or the target is fetched once only; or the page's own word is refused). O(log n), and
--          O(a) with a <= MOST_ALIASES aliases; idempotent. A lease goes on; where two pages become one, that of the old one is over.
local from, to = ARGV[1], ARGV[3]
local slot = redis.call('HGET', P .. 'ids', from)
-- An alias does not move: only what the page is called now does.
if from == to or not slot or redis.call('HEXISTS', P .. 'aliases', from) == 1 or tonumber(ARGV[5]) ~= ACTIVE then return 0 end
local now, index = clock(), tonumber(slot)
local p, s = read_page(index), parse_seen(read_raw('seen', index))
local lease = redis.call('HGET', P .. 'leases', slot)
if p.state ~= ACTIVE or (s.attempts == 0 and not lease) then return 0 end
local alias = redis.call('HGET', P .. 'aliases', to)
if alias then to = string.sub(alias, 1, 20) end
local other = redis.call('HGET', P .. 'ids', to)
-- Two pages that name each other would change places for ever; a page that many name is named by mistake, and one that names another
-- one each time goes on for ever.
local CANONICAL_ALIASES, is_canonical = 20, ARGV[17] == '1'
if is_canonical and (other == slot or redis.call('LLEN', P .. 'aliased:' .. (other or slot)) >= CANONICAL_ALIASES) then
  redis.call('HINCRBY', P .. 'stats', 'canonical_refused', 1)
  return 0
end
local function count_move(name)
  redis.call('HINCRBY', P .. 'stats', name, 1)
  if is_canonical then redis.call('HINCRBY', P .. 'stats', 'canonical_followed', 1) end
end
local function is_stated(at) return redis.call('GETBIT', P .. 'stated', at) == 1 end

if not other or other == slot then
  -- The target is new, or what this page was called once.
  to = ARGV[3]
  if alias then
    redis.call('HDEL', P .. 'aliases', to)
    redis.call('LREM', P .. 'aliased:' .. slot, 1, to)
  end
  redis.call('HSET', P .. 'ids', to, slot)
  add_alias(slot, from, to, ARGV[2])
  point_aliases(slot, to)
  local host = host_number(ARGV[4])
  if not is_stated(index) and tonumber(ARGV[6]) > 0 then p.importance = tonumber(ARGV[6]) end
  p.min_rate, p.max_rate, p.gap = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
  local before = tostring(p.host)
  count_kept(p, -1)
  p.host, p.pattern = tonumber(host), pattern_number(host, ARGV[13])
  write_page(index, p)
  count_kept(p, 1)
  redis.call('HSET', P .. 'records', slot, ARGV[11])
  -- A sitemap said it of the old one.
  redis.call('HDEL', P .. 'lastmod', slot)
  set_timetable(index, ARGV[14])
  local due = before ~= host and redis.call('ZSCORE', P .. 'due:' .. before, slot)
  if due then
    redis.call('ZREM', P .. 'due:' .. before, slot)
    redis.call('ZADD', P .. 'due:' .. host, due, slot)
    sync_host(before)
    sync_host(host)
  end
  count_move('moved')
  return 1
end

local at = tonumber(other)
local there, history = read_page(at), parse_seen(read_raw('seen', at))
if there.state ~= ACTIVE and there.state ~= RETIRED then return 0 end
if is_stated(index) then redis.call('SETBIT', P .. 'stated', at, 1) end
there.importance = math.max(there.importance, p.importance)
if there.state == RETIRED then
  there.state = ACTIVE
  history.carry, history.settled = (read_live() or timetable_of(at)) and FORCED or 1, now
  history.failures, history.gone = 0, 0
  redis.call('HDEL', P .. 'failed', other)
  if history.visits == 0 then history.last_attempt = 0 end
  redis.call('HINCRBY', P .. 'stats', 'retired', -1)
  redis.call('ZADD', P .. 'due:' .. there.host, string.format('%.6f', math.max(now, history.last_attempt + there.gap)), other)
end
if history.visits == 0 and s.visits > 0 and redis.call('HEXISTS', P .. 'leases', other) == 0 then
  -- One that was never seen takes over what is known; one that is being fetched was handed out without it.
  for _, name in ipairs({'last_seen', 'shape', 'time', 'visits', 'observations', 'changes', 'bits'}) do history[name] = s[name] end
  if history.attempts > 0 then history.attempts = math.max(history.attempts, history.visits) end
  for _, kind in ipairs({'content', 'watch', 'bursts'}) do write_raw(kind, at, read_raw(kind, index)) end
  local memory = redis.call('HGET', P .. 'memory', slot)
  if memory then redis.call('HSET', P .. 'memory', other, memory) end
  redis.call('HINCRBY', P .. 'stats', 'fetched', 1)
end
write_page(at, there)
write_seen(at, history)
sync_host(tostring(there.host))
for _, name in ipairs(redis.call('LRANGE', P .. 'aliased:' .. slot, 0, -1)) do
  redis.call('HSET', P .. 'ids', name, other)
  add_alias(other, name, to, string.sub(redis.call('HGET', P .. 'aliases', name), 21))
end
redis.call('DEL', P .. 'aliased:' .. slot)
redis.call('HSET', P .. 'ids', from, other)
add_alias(other, from, to, ARGV[2])
if lease then drop_lease(slot, parse_lease(lease).owner) end
redis.call('ZREM', P .. 'due:' .. p.host, slot)
redis.call('HINCRBY', P .. 'stats', 'pages', -1)
if s.attempts == 0 then redis.call('HINCRBY', P .. 'stats', 'pending', -1) end
if s.visits > 0 then redis.call('HINCRBY', P .. 'stats', 'fetched', -1) end
free_slot(index, p)
sync_host(tostring(p.host))
count_move('merged')
return 2
