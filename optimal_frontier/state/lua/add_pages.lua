-- Adds pages that are not known; of one that is, updates the importance where it was stated.
-- ARGV  per page 12 values: fingerprint, host, kind (1 page, 2 once, 3 transient), importance (0: nothing said), min_rate, max_rate,
--       gap, priority, record, 1 if the importance is the request's own (a known page takes it over), pattern of the URL, timetable (or empty)
-- Returns  per page 1 if it is new, 0 if it was known. O(log n) a page; idempotent but for transients.
clock()
-- What a host has beyond its share of patterns is of one that is called '' and has no limit but that of the namespace; 0: none.
local HOST_PATTERNS, MOST_PATTERNS = 200, 100000
local function pattern_number(host, text)
  local known = redis.call('HGET', P .. 'patterns', host .. ' ' .. text)
  if known then return tonumber(known) end
  local of_host = tonumber(redis.call('HGET', P .. 'patterns:hosts', host) or '0')
  if text ~= '' and of_host >= HOST_PATTERNS then return pattern_number(host, '') end
  if redis.call('HLEN', P .. 'patterns') >= MOST_PATTERNS then return 0 end
  local new = redis.call('HLEN', P .. 'patterns') + 1
  redis.call('HSET', P .. 'patterns', host .. ' ' .. text, new)
  redis.call('HSET', P .. 'patterns:hosts', host, of_host + 1)
  return new
end
local result = {}
for i = 1, #ARGV, 12 do
  local id, host_name, kind = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
  local stated = tonumber(ARGV[i + 3])
  local known = kind ~= TRANSIENT and redis.call('HGET', P .. 'ids', id)
  if known then
    if stated > 0 and ARGV[i + 9] == '1' then
      redis.call('SETBIT', P .. 'stated', tonumber(known), 1)
      local p = read_page(tonumber(known))
      if p.importance ~= stated then
        p.importance = stated
        write_page(tonumber(known), p)
      end
    end
    result[#result + 1] = 0
  else
    local host = redis.call('HGET', P .. 'hosts', host_name)
    if not host then
      host = tostring(redis.call('HLEN', P .. 'hosts') + 1)
      redis.call('HSET', P .. 'hosts', host_name, host)
      redis.call('HSET', P .. 'hosts:names', host, host_name)
    end
    local slot = redis.call('LPOP', P .. 'free')
    if slot then slot = tonumber(slot) else slot = redis.call('HINCRBY', P .. 'meta', 'slots', 1) - 1 end
    local p = read_page(slot)
    p.importance = stated > 0 and stated or 1
    p.min_rate, p.max_rate, p.gap = tonumber(ARGV[i + 4]), tonumber(ARGV[i + 5]), tonumber(ARGV[i + 6])
    p.host, p.state = tonumber(host), kind
    p.pattern = kind == ACTIVE and pattern_number(host, ARGV[i + 10]) or 0
    write_page(slot, p)
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
