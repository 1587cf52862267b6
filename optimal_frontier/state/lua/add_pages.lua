-- Adds pages that are not known; of one that is, updates the importance where it was stated, and brings it back if it was retired for long.
-- ARGV  per page 14 values: fingerprint, host, kind (1 page, 2 once, 3 transient), importance (0: nothing said), min_rate, max_rate,
--       gap, priority, record, 1 if the importance is the request's own (a known page takes it over), pattern of the URL, timetable (or empty),
--       most pages of its host and of its pattern for it to be taken (0: no limit)
-- Returns  per page 1 if it is new, 0 if it was known, -1 if its host has as many as it may have, -2 if its pattern has. O(log n) a page;
--          idempotent but for transients.
local now = clock()
-- A link to a retired page brings it back, but not at every visit of the pages that have that link: after a day, and twice as long
-- each time.
local REVIVED_AFTER_S, LONGEST_RETIREMENT_S = 86400, 30 * 86400
local function revive(slot)
  local index = tonumber(slot)
  local p = read_page(index)
  if p.state ~= RETIRED then return end
  local s, q = parse_seen(read_raw('seen', index)), parse_plan(read_raw('plan', index))
  local retired_s = math.min(LONGEST_RETIREMENT_S, REVIVED_AFTER_S * 2 ^ (math.max(2, math.min(s.failures, 17)) - 2))
  if now < s.last_attempt + retired_s then return end
  -- Gone once more it is retired at once; it is due now, not since a day.
  p.state, s.last_attempt = ACTIVE, now - least_wait(p, s, q)
  write_page(index, p)
  write_seen(index, s)
  redis.call('ZADD', P .. 'due:' .. p.host, number(now), slot)
  sync_host(tostring(p.host))
  redis.call('HINCRBY', P .. 'stats', 'retired', -1)
  redis.call('HINCRBY', P .. 'stats', 'revived', 1)
end
-- Whether as many are kept as may be; what a host has beyond its share of patterns (see _identities) has no limit of its own.
local function is_full(name, key, most)
  return most > 0 and key and tonumber(redis.call('HGET', P .. name, key) or '0') >= most
end
local function refusal(host_name, pattern, most_of_host, most_of_pattern)
  local host = (most_of_host > 0 or most_of_pattern > 0) and redis.call('HGET', P .. 'hosts', host_name)
  if not host then return false end
  if is_full('hosts:pages', host, most_of_host) then return -1, 'trapped_host' end
  if is_full('patterns:pages', redis.call('HGET', P .. 'patterns', host .. ' ' .. pattern), most_of_pattern) then
    return -2, 'trapped_pattern'
  end
  return false
end
local result = {}
for i = 1, #ARGV, 14 do
  local id, host_name, kind = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
  local stated = tonumber(ARGV[i + 3])
  local known = kind ~= TRANSIENT and redis.call('HGET', P .. 'ids', id)
  local refused, counter = false, nil
  if not known then refused, counter = refusal(host_name, ARGV[i + 10], tonumber(ARGV[i + 12]), tonumber(ARGV[i + 13])) end
  if known then
    if stated > 0 and ARGV[i + 9] == '1' then
      redis.call('SETBIT', P .. 'stated', tonumber(known), 1)
      local p = read_page(tonumber(known))
      if p.importance ~= stated then
        p.importance = stated
        write_page(tonumber(known), p)
      end
    end
    if kind == ACTIVE then revive(known) end
    result[#result + 1] = 0
  elseif refused then
    redis.call('HINCRBY', P .. 'stats', counter, 1)
    result[#result + 1] = refused
  else
    local host = host_number(host_name)
    local slot = redis.call('LPOP', P .. 'free')
    if slot then slot = tonumber(slot) else slot = redis.call('HINCRBY', P .. 'meta', 'slots', 1) - 1 end
    local p = read_page(slot)
    p.importance = stated > 0 and stated or 1
    p.min_rate, p.max_rate, p.gap = tonumber(ARGV[i + 4]), tonumber(ARGV[i + 5]), tonumber(ARGV[i + 6])
    p.host, p.state = tonumber(host), kind
    p.pattern = kind == ACTIVE and pattern_number(host, ARGV[i + 10]) or 0
    write_page(slot, p)
    count_kept(p, 1)
    redis.call('HSET', P .. 'records', slot, ARGV[i + 8])
    if kind ~= TRANSIENT then redis.call('HSET', P .. 'ids', id, slot) end
    if kind == ACTIVE then
      redis.call('SETBIT', P .. 'stated', slot, stated > 0 and ARGV[i + 9] == '1' and 1 or 0)
      redis.call('HINCRBY', P .. 'stats', 'pages', 1)
      set_timetable(slot, ARGV[i + 11])
    end
    redis.call('HINCRBY', P .. 'stats', 'pending', 1)
    queue_first(slot, p, tonumber(ARGV[i + 7]))
    sync_host(host)
    result[#result + 1] = 1
  end
end
return result
