-- Hands out up to n requests under a lease: earliest deadline first among hosts that may be fetched now, first visits for their share.
-- ARGV  owner, n, lease (s), budget (1/s; 0: no limit, and deadlines are anticipated), discovery share, host delay (s), host period (s;
--       mean time between two requests to a host), most requests to a host (0: no limit), then triples: host, group, most requests to
--       all hosts of the group (a downloader slot; 0: it is full)
-- Returns  {now, wait (s; -1: nothing to wait for), epoch, published plan as a flat list,
--          then per request {slot, token, lateness (s; "-" on a first visit), seconds since last seen (-1: never), page, seen, plan,
--          content, record, {trust in the host's Last-Modified, in its sitemaps, in its 304s (as stored, or nil); where a sitemap said
--          something: seconds since then, seconds from the last change until then, resolution (s)},
--          prior of its pattern (24 bytes, zeros: the default), watch, of a page with update times {its timetable, as in P.timed, since when
--          it was not seen (s), now (s)}, bursts, memory (or nil), 1 if a source put it forward (0)}}
-- While there is a live price (P.price), pages that go by it are handed out by what a visit is worth, due or not: see _by_price.lua.
-- O(log n) a request; at most REQUEUE_LIMIT expired leases and REQUEUE_LIMIT stale queue entries are put right per call.
local owner, n, lease_s = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local budget, share = tonumber(ARGV[4]), tonumber(ARGV[5])
local host_delay, host_period = tonumber(ARGV[6]), tonumber(ARGV[7])
local now = clock()
redis.call('ZADD', P .. 'owners', string.format('%.6f', now), owner)

-- Leases that nobody renews any more.
for _, silent in ipairs(redis.call('ZRANGEBYSCORE', P .. 'owners', '-inf', now - OWNER_SILENCE_S, 'LIMIT', 0, 8)) do
  local slots = redis.call('SRANDMEMBER', P .. 'owner:' .. silent, REQUEUE_LIMIT)
  for _, slot in ipairs(slots) do
    local text = redis.call('HGET', P .. 'leases', slot)
    local lease = text and parse_lease(text)
    if lease and lease.owner == silent then
      requeue(slot, lease)
      redis.call('HINCRBY', P .. 'stats', 'leases_expired', 1)
    else
      redis.call('SREM', P .. 'owner:' .. silent, slot)
    end
  end
  if #slots < REQUEUE_LIMIT then redis.call('ZREM', P .. 'owners', silent) end
end
for _, slot in ipairs(redis.call('ZRANGEBYSCORE', P .. 'leases:expiry', '-inf', now, 'LIMIT', 0, REQUEUE_LIMIT)) do
  local text = redis.call('HGET', P .. 'leases', slot)
  if text then
    requeue(slot, parse_lease(text))
    redis.call('HINCRBY', P .. 'stats', 'leases_expired', 1)
  else
    redis.call('ZREM', P .. 'leases:expiry', slot)
  end
end

local live = read_live()
local ROUND_TRIP_S = 0.02
local late = {}  -- host that has just opened -> seconds since it could have
local opened = redis.call('ZRANGEBYSCORE', P .. 'hosts:blocked', '-inf', now, 'WITHSCORES', 'LIMIT', 0, 1024)
for i = 1, #opened, 2 do
  redis.call('ZREM', P .. 'hosts:blocked', opened[i])
  sync_host(opened[i])
  late[opened[i]] = now - tonumber(opened[i + 1])
  if live then redis.call('HSET', P .. 'hosts:opened', opened[i], opened[i + 1]) end
end

-- The bucket of the budget.
local bucket = redis.call('HMGET', P .. 'bucket', 'tokens', 'at', 'discovery')
local tokens, discovery = math.huge, tonumber(bucket[3] or '0')
if budget > 0 then
  local depth = math.max(1, 0.1 * budget)
  tokens = bucket[1] and math.min(depth, tonumber(bucket[1]) + budget * (now - tonumber(bucket[2]))) or 1
end

-- Hosts whose downloader slots are full are out of sight for this call.
local per_host = tonumber(ARGV[8])
local group_of, members, room, hidden = {}, {}, {}, {}  -- hidden: host -> true
local function close_group(group)
  for _, host in ipairs(members[group]) do
    hide_host(host)
    hidden[host] = true
  end
end
for i = 9, #ARGV, 3 do
  local host, group = redis.call('HGET', P .. 'hosts', ARGV[i]), ARGV[i + 1]
  if host then
    group_of[host] = group
    members[group] = members[group] or {}
    table.insert(members[group], host)
    room[group] = tonumber(ARGV[i + 2])
  end
end
for group, left in pairs(room) do if left < 1 then close_group(group) end end

local published = redis.call('HGETALL', P .. 'published')
local reply = {'', '', redis.call('HGET', P .. 'meta', 'epoch') or '0', published}
local aside = {}
local waiting = false  -- whether pages that wait for an update time made room for others
local shut, passed = {}, {}  -- host that this call has closed -> true; pages that it closed them for
local guard = 2 * n + REQUEUE_LIMIT
local function words_of(slot, host)
  local words = redis.call('HMGET', P .. 'trust', host .. ':header', host .. ':sitemap', host .. ':validators')
  local modified, resolution, told = string.match(redis.call('HGET', P .. 'lastmod', slot) or '', '^(%S+) (%S+) (%S+)$')
  if modified then
    words[4], words[5], words[6] = number(now - tonumber(told)), number(math.max(0, told - modified)), resolution
  end
  return words
end
local function times_of(slot, s)
  local t, raw = timetable_of(slot)
  return t and s.visits > 0 and {t.text, raw, number(covered(s)), number(now)} or {}
end
local function hand_out(slot, p, seen_raw, plan_raw, due, first)
  -- With the time in it a token stays unique when a crashed server has lost its last second.
  local token = string.format('%d@%.6f', redis.call('HINCRBY', P .. 'meta', 'lease_seq', 1), now)
  redis.call('HSET', P .. 'leases', slot, table.concat({token, owner, string.format('%.6f', now), number(due), first}, ' '))
  redis.call('ZADD', P .. 'leases:expiry', string.format('%.6f', now + lease_s), slot)
  redis.call('SADD', P .. 'owner:' .. owner, slot)
  local s = parse_seen(seen_raw)
  local elapsed = s.visits > 0 and now - s.last_seen or -1
  reply[#reply + 1] = {slot, token, first == '-' and number(now - due) or '-', number(elapsed), read_raw('page', slot), seen_raw, plan_raw,
    read_raw('content', slot), redis.call('HGET', P .. 'records', slot), words_of(slot, tostring(p.host)),
    read_raw('prior', p.pattern), read_raw('watch', slot), times_of(slot, s),
    read_raw('bursts', slot), redis.call('HGET', P .. 'memory', slot), redis.call('HEXISTS', P .. 'announced', slot)}
  tokens = tokens - 1
  -- By what a round trip took the next request is not late as well: in no time T are there more than T / period + 2.
  local pause = math.max(host_delay, host_period - math.min(host_period, late[tostring(p.host)] or 0, ROUND_TRIP_S))
  late[tostring(p.host)] = nil
  if pause > 0 then
    shut[tostring(p.host)] = true
    redis.call('ZADD', P .. 'hosts:blocked', string.format('%.6f', now + pause), p.host)
    hide_host(tostring(p.host))
  else
    sync_host(tostring(p.host))
  end
  if per_host > 0 then
    local host = tostring(p.host)
    local group = group_of[host]
    if not group then
      group = 'host ' .. host
      group_of[host], members[group], room[group] = group, {host}, per_host
    end
    room[group] = room[group] - 1
    if room[group] == 0 then close_group(group) end
  end
end

-- What was bought at an update time loses by every second: it goes before all others. Returns whether there may be more.
local URGENT, urgent_passed = 32, 0
local function hand_out_urgent()
  local rows = redis.call('ZRANGEBYSCORE', P .. 'timed:due', '-inf', now, 'LIMIT', urgent_passed, URGENT)
  for _, slot in ipairs(rows) do
    local index = tonumber(slot)
    local p, t = read_page(index), timetable_of(index)
    local host, seen_raw, plan_raw = tostring(p.host), read_raw('seen', index), read_raw('plan', index)
    local s, q = parse_seen(seen_raw), parse_plan(plan_raw)
    if not t or p.state ~= ACTIVE or not goes_by_times(p, s, q) or not redis.call('ZSCORE', P .. 'due:' .. host, slot) then
      redis.call('ZREM', P .. 'timed:due', slot)
    else
      local due = deadline_by_times(index, t, p, s, q, now)
      if due > now then
        redis.call('ZADD', P .. 'timed:due', number(due), slot)
      elseif not hidden[host] and not redis.call('ZSCORE', P .. 'hosts:blocked', host) then
        redis.call('ZREM', P .. 'timed:due', slot)
        redis.call('ZREM', P .. 'due:' .. host, slot)
        hand_out(index, p, seen_raw, plan_raw, due, '-')
        return true
      else
        -- Its host is shut: until it opens the page is late as any other.
        urgent_passed = urgent_passed + 1
        redis.call('ZADD', P .. 'due:' .. host, number(due), slot)
      end
    end
  end
  return #rows == URGENT and urgent_passed < REQUEUE_LIMIT
end
if redis.call('EXISTS', P .. 'timed:due') == 1 then
  while #reply - 4 < n and tokens >= 1 and guard > 0 and hand_out_urgent() do guard = guard - 1 end
end

-- Nothing is looked at before there is a token; then something may be ready.
local ready, early, ready_at, at = {}, {}, redis.call('EXISTS', P .. 'hosts:due') == 1 and now or math.huge, 1
if live and tokens >= 1 and n > 0 then
  local paced = host_delay > 0 or host_period > 0
  ready, early, ready_at = gather(live, now, math.min(n, math.floor(tokens)), budget == 0, function(host)
    local left = group_of[host] and room[group_of[host]] or (per_host > 0 and per_host or math.huge)
    return paced and math.min(1, left) or left
  end)
end
local function most_wanted()
  while ready[at] and (shut[ready[at].host] or hidden[ready[at].host]) do
    passed[#passed + 1] = ready[at]
    at = at + 1
  end
  return ready[at]
end

while #reply - 4 < n and tokens >= 1 and guard > 0 do
  guard = guard - 1
  local wanted = live and most_wanted()
  local head = redis.call('ZRANGE', P .. 'hosts:due', 0, 0, 'WITHSCORES')
  local first = redis.call('ZRANGE', P .. 'hosts:first', 0, 0)
  local due_now = head[1] and tonumber(head[2]) <= (budget == 0 and LATER or now)
  if due_now and budget == 0 and tonumber(head[2]) > now and first[1] then due_now = false end
  if live then due_now = wanted and (wanted.by_price or wanted.due <= now or not first[1]) end
  if not due_now and not first[1] then break end
  if first[1] and due_now then discovery = math.min(1 + share, discovery + share) end
  if first[1] and (not due_now or discovery >= 1) then
    if due_now then discovery = discovery - 1 end
    local host = string.sub(first[1], 21)
    local popped = redis.call('ZPOPMIN', P .. 'first:' .. host)
    local _, _, slot = struct.unpack('>ddI4', popped[1])
    local p = read_page(slot)
    hand_out(slot, p, read_raw('seen', slot), read_raw('plan', slot), now, popped[2])
  elseif live then
    local due = deadline_of_candidate(wanted, live)
    at = at + 1
    follow(live, wanted, now, tonumber(redis.call('HGET', P .. 'hosts:opened', wanted.host) or nil))
    redis.call('HDEL', P .. 'hosts:opened', wanted.host)
    redis.call('ZREM', P .. 'due:' .. wanted.host, wanted.slot)
    hand_out(wanted.slot, wanted.p, wanted.seen_raw, wanted.plan_raw, due, '-')
  else
    local host = head[1]
    local popped = redis.call('ZPOPMIN', P .. 'due:' .. host)
    local slot = tonumber(popped[1])
    local p, seen_raw, plan_raw = read_page(slot), read_raw('seen', slot), read_raw('plan', slot)
    local s, q = parse_seen(seen_raw), parse_plan(plan_raw)
    local due = tonumber(popped[2])
    local planned = q.base_time > 0 or s.visits == 0 or s.gone > 0
    local t = timetable_of(slot)
    local by_times = t and goes_by_times(p, s, q)
    if by_times then
      due = deadline_by_times(slot, t, p, s, q, now)
      if due > now and due < INFINITE then redis.call('ZADD', P .. 'timed:due', number(due), slot) end
    elseif planned then due = deadline(p, s, q) end
    if p.state ~= ACTIVE then
      sync_host(host)
    elseif budget > 0 and due > now then
      -- The plan moved it later since it was queued.
      if due < INFINITE then redis.call('ZADD', P .. 'due:' .. host, number(due), slot) end
      sync_host(host)
    elseif by_times and due > now then
      -- Never anticipated.
      if due < INFINITE then aside[#aside + 1] = {host, number(q.base_time > 0 and due + LATER or due), slot, due} end
      waiting = waiting or q.base_time > 0
      sync_host(host)
    elseif budget == 0 and due > now and earliest(p, s, q) > now then
      -- Anticipated, but not before its minimum interval: others first, then back.
      aside[#aside + 1] = {host, number(due), slot, false}
      sync_host(host)
    else
      hand_out(slot, p, seen_raw, plan_raw, due, '-')
    end
  end
end

-- Hosts out of sight count for nothing in the wait: the caller knows when their slots open, and others must not wait for that.
local wait = math.huge
local head = redis.call('ZRANGE', P .. 'hosts:due', 0, 0, 'WITHSCORES')
if head[2] then
  -- With deadlines anticipated what is left could go now, unless this call came to its limit among pages put aside.
  if budget > 0 then wait = math.max(0, tonumber(head[2]) - now)
  elseif tonumber(head[2]) <= LATER then wait = (guard > 0 or waiting) and 0 or 1 end
end
if live then
  wait = most_wanted() and 0 or math.max(0, ready_at - now)
  local touched = {}
  for i = at, #ready do passed[#passed + 1] = ready[i] end
  put_back(live, now, passed, touched)
  put_back(live, now, early, touched)
  for host in pairs(touched) do if not hidden[host] then sync_host(host) end end
  if #reply > 4 then store_price(live, now) end
end
if redis.call('EXISTS', P .. 'hosts:first') == 1 then wait = 0 end
local coming = redis.call('ZRANGEBYSCORE', P .. 'timed:due', '(' .. number(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
if coming[2] then wait = math.min(wait, tonumber(coming[2]) - now) end
for _, a in ipairs(aside) do
  redis.call('ZADD', P .. 'due:' .. a[1], a[2], a[3])
  if not hidden[a[1]] then
    sync_host(a[1])
    local p, s, q = read_page(a[3]), parse_seen(read_raw('seen', a[3])), parse_plan(read_raw('plan', a[3]))
    wait = math.min(wait, (a[4] or earliest(p, s, q)) - now)
  end
end
for host in pairs(hidden) do sync_host(host) end
redis.call('HSET', P .. 'bucket', 'discovery', number(discovery))
if budget > 0 then redis.call('HSET', P .. 'bucket', 'tokens', number(tokens), 'at', string.format('%.6f', now)) end
if #reply > 4 then redis.call('HINCRBY', P .. 'stats', 'dispatched', #reply - 4) end

local opens = redis.call('ZRANGE', P .. 'hosts:blocked', 0, 0, 'WITHSCORES')
local expires = redis.call('ZRANGE', P .. 'leases:expiry', 0, 0, 'WITHSCORES')
if budget > 0 and tokens < 1 then wait = math.max(wait, (1 - tokens) / budget) end
if opens[2] then wait = math.min(wait, math.max(0, tonumber(opens[2]) - now)) end
if expires[2] then wait = math.min(wait, math.max(0.001, tonumber(expires[2]) - now)) end
-- Another owner may fall silent without a word.
if redis.call('ZCARD', P .. 'owners') > 1 then wait = math.min(wait, OWNER_SILENCE_S) end
reply[1], reply[2] = number(now), wait == math.huge and '-1' or number(wait)
return reply
