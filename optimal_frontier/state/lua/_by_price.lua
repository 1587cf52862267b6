-- Choosing by price, for `dispatch`: about a dozen pages of the queue are looked at for one visit, and the one that is worth most is made.
local CANDIDATES = 12
local FURTHER = 4
local PRICE_MEMORY = 100
local HOST_MEMORY = 20
local PROMPT = 0.05
-- A place in the queue this close, as a share of the time to it, is left as it is.
local SAME_PLACE = 0.01

-- A page of the queue: its deadline, from when on it may be visited, and its claim by which it is ranked.
local function look_at(slot, host, score, live, now, anticipates)
  local c = {slot = slot, host = host, score = score, p = read_page(slot)}
  if c.p.state ~= ACTIVE then return nil end
  c.seen_raw, c.plan_raw = read_raw('seen', slot), read_raw('plan', slot)
  local p, s, q, x = c.p, parse_seen(c.seen_raw), parse_plan(c.plan_raw), read_index(slot)
  c.s, c.x, c.price, c.opens = s, x, price_at(live, host), earliest(p, s, q)
  local t = timetable_of(slot)
  if t and goes_by_times(p, s, q) then
    -- At an update time that was bought it is worth the price for sure, and the sooner the more.
    c.by_price, c.claim = false, math.huge
    c.due = deadline_by_times(slot, t, p, s, q, now)
    c.opens = math.max(c.opens, c.due)
    return c
  end
  c.by_price = goes_by_price(p, s, q, x)
  if not c.by_price then
    c.due = (q.base_time > 0 or s.visits == 0 or s.gone > 0 or s.carry >= FORCED) and deadline(p, s, q) or score
    if not anticipates or s.visits == 0 or s.gone > 0 then c.opens = math.max(c.opens, c.due) end
    local have = q.base_time > s.settled and q.base_credit or s.carry
    -- At its deadline it is worth the price, and the more the later.
    c.claim = have >= FORCED and math.huge or (c.price > 0 and c.price or 1) * (now - s.last_attempt) / math.max(1e-6, c.due - s.last_attempt)
    return c
  end
  local elapsed = now - s.last_seen
  c.opens = math.max(c.opens, s.last_seen + 1 / x.most_rate)
  c.bound = visit_bound(x.weight, x.change_rate, live.is_freshness)
  c.value = c.bound * value_share(x.change_rate * elapsed)
  c.claim = c.value
  if elapsed * x.least_rate >= 1 then c.claim = math.max(c.value, c.price * elapsed * x.least_rate) end
  return c
end

local function deadline_of_candidate(c, live)
  if c.by_price then return deadline_by_price(c.p, c.s, c.x, c.price, live.is_freshness) end
  return c.due
end

-- Pages to look at for so many visits.
local function looks_for(visits) return CANDIDATES + FURTHER * (visits - 1) end

-- Looks at the first pages of open hosts, until there are a dozen that may be visited for the first visit wanted, and four for every
-- further one; of a host that takes `room_of(host)` requests no more than these need. Returns those that may be visited, the others, and when the first of the
-- others may be.
local function gather(live, now, wanted, anticipates, room_of)
  local ready, early, opens, looked, enough = {}, {}, math.huge, 0, 0
  local rows, front = redis.call('ZRANGE', P .. 'hosts:due', 0, looks_for(wanted) - 1, 'WITHSCORES'), {}
  for i = 1, #rows, 2 do front[#front + 1] = {head = tonumber(rows[i + 1]), host = rows[i], read = 0, at = 1, ready = 0, rows = {}} end
  local at, most = 1, CANDIDATES * (wanted - 1) + REQUEUE_LIMIT
  while front[at] and enough < looks_for(wanted) and looked < most do
    local f = front[at]
    local room = room_of(f.host)
    if f.at > #f.rows then
      -- Twice as many each time: most hosts give one or two, one gives all.
      local more = math.max(2, f.read)
      f.rows, f.at = redis.call('ZRANGE', P .. 'due:' .. f.host, f.read, f.read + more - 1, 'WITHSCORES'), 1
      f.read = f.read + more
    end
    if f.at > #f.rows or f.ready >= looks_for(room) then
      at = at + 1
    else
      local c = look_at(tonumber(f.rows[f.at]), f.host, tonumber(f.rows[f.at + 1]), live, now, anticipates)
      f.at, looked = f.at + 2, looked + 1
      if not c then
        early[#early + 1] = {slot = tonumber(f.rows[f.at - 2]), host = f.host, gone = true}
      elseif c.opens <= now then
        ready[#ready + 1] = c
        f.ready = f.ready + 1
        if f.ready <= FURTHER * room then enough = enough + 1 end
      else
        early[#early + 1] = c
        opens = math.min(opens, c.opens)
      end
      -- The host goes where its next page stands.
      local nearest = tonumber(f.rows[f.at + 1]) or c and c.score or f.head
      f.head = nearest
      local to = at
      while front[to + 1] and front[to + 1].head < nearest do
        front[to] = front[to + 1]
        to = to + 1
      end
      front[to] = f
    end
  end
  table.sort(ready, function(a, b)
    if a.claim ~= b.claim then return a.claim > b.claim end
    if a.score ~= b.score then return a.score < b.score end
    return a.slot < b.slot
  end)
  -- There may be more than was looked at.
  if looked >= most or #rows / 2 == looks_for(wanted) then opens = math.min(opens, now + 1) end
  redis.call('HINCRBY', P .. 'stats', 'evaluations', looked)
  return ready, early, opens
end

-- The price follows what is visited for its worth: not a page at a bound of its rate, nor one that was worth it before its host opened
-- (at `opened`, s; nil: it was open at the last visit too).
local function follow(live, c, now, opened)
  if not c.by_price or c.claim > c.value or c.value <= 0 then return end
  live.is_moved = true
  if opened and c.bound * value_share(c.x.change_rate * (opened - c.s.last_seen)) >= live.price then
    -- The price of the host, while it is at its limit.
    local own = live.hosts[c.host] > 0 and live.hosts[c.host] or c.value
    live.hosts[c.host] = own * math.exp(math.log(c.value / own) / HOST_MEMORY)
    live.changed = live.changed or {}
    live.changed[c.host] = true
    return
  end
  if live.hosts[c.host] > 0 then
    live.hosts[c.host] = live.hosts[c.host] * math.exp(-2 / HOST_MEMORY)
    if live.hosts[c.host] <= live.price then live.hosts[c.host] = 0 end
    live.changed = live.changed or {}
    live.changed[c.host] = true
  end
  local held = c.bound * value_share(c.x.change_rate * (c.opens - c.s.last_seen))
  if held >= live.price and now - c.opens < PROMPT * (now - c.s.last_seen) then return end
  live.price = live.price > 0 and live.price * math.exp(math.log(c.value / live.price) / PRICE_MEMORY) or c.value
end

-- What was looked at and is not visited goes where it stands by the price as it is now.
local function put_back(live, now, rest, touched)
  for _, c in ipairs(rest) do
    local key = false
    if not c.gone then
      c.price = price_at(live, c.host)
      key = c.score
      if c.by_price and (c.claim < c.price or c.score > now) then
        key = math.min(deadline_of_candidate(c, live), now + live.look)
      elseif not c.by_price and c.due > c.score then
        key = c.due
      end
      key = math.max(key, c.opens > now and c.opens or 0)
    end
    if not key or key >= INFINITE then
      redis.call('ZREM', P .. 'due:' .. c.host, c.slot)
      touched[c.host] = true
    elseif math.abs(key - c.score) > SAME_PLACE * math.abs(key - now) then
      redis.call('ZADD', P .. 'due:' .. c.host, number(key), c.slot)
      touched[c.host] = true
    end
  end
end

local function store_price(live, now)
  live.highest = math.max(live.highest, live.price)
  local fields = {'price', number(live.price)}
  if live.is_moved then fields[3], fields[4] = 'at', string.format('%.6f', now) end
  for host in pairs(live.changed or {}) do
    live.highest = math.max(live.highest, live.hosts[host])
    if live.hosts[host] > 0 then
      fields[#fields + 1], fields[#fields + 2] = 'h:' .. host, number(live.hosts[host])
    else
      redis.call('HDEL', P .. 'price', 'h:' .. host)
    end
  end
  fields[#fields + 1], fields[#fields + 2] = 'highest', number(live.highest)
  redis.call('HSET', P .. 'price', unpack(fields))
end
