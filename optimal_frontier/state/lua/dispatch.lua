-- Hands out up to n requests under a lease: of those that are due first those that lose most by waiting, first visits for their share.
-- ARGV[1]  "<I4I4dddddd": n, most requests to a host (0: no limit), lease (s), budget (1/s; 0: none), share of first visits (1: they come
--          first), host delay (s), host period (s; mean time between two requests to a host)
-- ARGV[2]  per host "<I4I4": hosts that take fewer requests than that now, and how many
-- Returns  {"<ddddd": now, wait (us; FAR: nothing to wait for), log price, number of the plan, pages forgotten; hosts: number, name, words
--          (or nil) of each; memory of each page (or nil)}, then per page: page, "<dd" token and lateness (us; below 0: early; FAR: a first
--          visit), stored value. O(log n) a page; whoever does not hear the reply: its leases run out.
-- Every page of the queue that is looked at either goes out, or to where it stands at the present price, or to a turn of its host.
local n, per_host, lease, budget, share, delay, period = up('<I4I4ddddd', ARGV[1])
local d = read_state()
local now = clock(d[1])
local tokens, discovery, L, step = d[2], d[3], d[4], d[5]
-- Looked at beyond twice the requests; pages of a shut host that come up at one turn of it; seconds by which a host may catch up.
local SPARE, RIVALS, CATCH_UP = ${SPARE}, ${RIVALS}, 20000
if budget > 0 then tokens = math.min(math.max(1, 0.1 * budget), tokens + budget * (now - d[1]) / 1e6) else tokens = n end
local want = math.min(n, floor(tokens + 1e-9))
local pause = math.max(delay, period)
local is_paced = pause > 0 or call('EXISTS', P .. 'opens', P .. 'w') > 0
if per_host == 0 then per_host = FAR end
if pause > 0 then per_host = 1 end
local room = {}
for i = 1, #ARGV[2], 8 do
  local host, left = up('<I4I4', ARGV[2], i)
  room[host] = left
end

-- When a host is free, and the last turn that is taken there. Both move on here, and are written once.
local free_at, turn_at, touched = {}, {}, {}
local function learn_hosts(hosts)
  if not is_paced then return end
  local asked, seen = {}, {}
  for i = 1, #hosts do
    local host = hosts[i]
    if host and not free_at[host] and not seen[host] then asked[#asked + 1], seen[host] = host, true end
  end
  if #asked == 0 then return end
  local told = call('HMGET', P .. 'opens', unpack(asked))
  for i = 1, #asked do
    if told[i] then free_at[asked[i]], turn_at[asked[i]] = up('<dd', told[i]) else free_at[asked[i]], turn_at[asked[i]] = 0, 0 end
  end
end
local function is_open(host) return (not is_paced or free_at[host] <= now) and (room[host] or per_host) >= 1 end
local function next_turn(host)
  local from = math.max(free_at[host] or 0, now + 10000)
  local turn = math.max(turn_at[host] or 0, from)
  free_at[host] = free_at[host] or 0
  turn_at[host] = turn + math.max(pause * 1e6 / RIVALS, 10000)
  touched[host] = true
  return turn
end
local function shut(host)
  room[host] = (room[host] or per_host) - 1
  if pause <= 0 then return end
  local late = free_at[host] > 0 and now - free_at[host] or 0
  free_at[host] = now + math.max(delay * 1e6, period * 1e6 - math.min(period * 1e6, late, CATCH_UP))
  touched[host] = true
end

-- Candidates among pages that were visited before.
local wait = want > 0 and FAR or 0
local queue, m, ready, c, from = {}, 0, {}, 0, 0
local function put(id, score) queue[m + 1], queue[m + 2], m = score, id, m + 2 end
while want > 0 and c < want and from < 4 * want + 256 do
  local size = 2 * want + SPARE
  local some = call('ZRANGE', P .. 'q', from, from + size - 1, 'WITHSCORES')
  local ids, scores, x = {}, {}, 0
  for i = 1, #some, 2 do
    local score = tonumber(some[i + 1])
    if score <= now or score % 2 == 0 then
      x = x + 1
      ids[x], scores[x] = some[i], score
    else wait = math.min(wait, score - now) end
  end
  if x > 0 then
    local rows, hosts = call('HMGET', P .. 'pages', unpack(ids)), {}
    for i = 1, x do
      rows[i] = rows[i] and #rows[i] >= HEAD and rows[i]
      hosts[i] = rows[i] and up('<I4', rows[i])
    end
    learn_hosts(hosts)
    for i = 1, x do
      local row, score = rows[i], scores[i]
      if not row then
        call('ZREM', P .. 'q', ids[i])
      else
        local host, _, _, b, a, s, e, l = up(QUEUE, row)
        local is_lost = score % 2 == 1
        local due, first = now, now
        if not is_lost then due, first = deadline(L, b, a, s, e, l), b + e * 1e6 end
        if not is_open(host) then
          local turn = score <= now and next_turn(host) or free_at[host] or 0
          if score <= now then put(ids[i], place(turn) + (is_lost and 1 or 0)) end
          wait = math.min(wait, math.max(0, turn - now))
        elseif first > now then
          wait = math.min(wait, first - now)
          if first > score then put(ids[i], place(first)) end
        else
          local wanted = a + s * L
          local is_free = s > 0 and not is_lost and wanted > e and wanted < l
          local z = is_lost and 1e9 or is_free and (now - due) / 1e6 / s or 2 * (now - due) / (due - b + 1)
          c = c + 1
          ready[c] = {z, ids[i], host, row, due, score, is_free, is_lost}
        end
      end
    end
  end
  if #some < 2 * size then break end
  from = from + size
end
if c > 1 then
  table.sort(ready, function(x, y)
    if x[1] ~= y[1] then return x[1] > y[1] end
    return x[2] < y[2]
  end)
end

-- First visits: the pages of each open host, by rank; hosts that have opened come back.
local firsts, lists, gone = {}, {}, {}
local function read_firsts()
  if is_paced then
    local opened = call('ZRANGEBYSCORE', P .. 'w', '-inf', now, 'LIMIT', 0, 64)
    for i = 1, #opened do
      call('ZREM', P .. 'w', opened[i])
      local member, score = head_of(up('>I4', opened[i]))
      if member then call('ZADD', P .. 'f', score, member .. opened[i]) end
    end
  end
  local heads, hosts = call('ZRANGE', P .. 'f', 0, want + #ARGV[2] / 8 + SPARE, 'WITHSCORES'), {}
  for i = 1, #heads, 2 do hosts[#hosts + 1] = up('>I4', heads[i], RANK + PAGE + 1) end
  learn_hosts(hosts)
  for i = 1, #hosts do
    local member, score = heads[2 * i - 1], tonumber(heads[2 * i])
    local one = {host = hosts[i], member = sub(member, 1, RANK + PAGE), score = score, head = member, at = 1}
    if is_paced and free_at[one.host] > now then
      -- It was held since it came to the front.
      call('ZREM', P .. 'f', member)
      call('ZADD', P .. 'w', free_at[one.host], sub(member, RANK + PAGE + 1))
    elseif is_open(one.host) then firsts[#firsts + 1] = one end
  end
end
local is_due = ready[1] and ready[1][1] >= 0
if want > 0 and (share >= 1 or discovery + share * want >= 1 or not is_due or c < want) then read_firsts() end
-- The next page of the host of `one`; nil: there is none, or the host takes no more.
local function step_on(one)
  if not lists[one.host] then lists[one.host] = call('ZRANGE', P .. 'f:' .. one.host, 0, want, 'WITHSCORES') end
  local list = lists[one.host]
  one.at = one.at + 1
  one.member, one.score = list[2 * one.at - 1], tonumber(list[2 * one.at] or nil)
  if not one.member or not is_open(one.host) then return nil end
  local i = 1
  while firsts[i] and (firsts[i].score < one.score or firsts[i].score == one.score and firsts[i].member < one.member) do i = i + 1 end
  table.insert(firsts, i, one)
  return one
end

local taken, at, r = {}, 0, 1
local until_ = floor((now + lease * 1e6) / 2) * 2 + 1
local begun, begun_ids = {}, {}
while at < want do
  local one = ready[r]
  while one and not is_open(one[3]) do
    put(one[2], place(next_turn(one[3])) + (one[8] and 1 or 0))
    r = r + 1
    one = ready[r]
  end
  local first, due_now = firsts[1], one and one[1] >= 0
  if first and due_now then discovery = math.min(1 + share, discovery + share) end
  if first and (not due_now or share >= 1 or discovery >= 1) then
    if due_now then discovery = discovery - 1 end
    table.remove(firsts, 1)
    at = at + 1
    taken[at] = {sub(first.member, RANK + 1), first.host, false, FAR}
    begun[first.host] = begun[first.host] or {head = first.head}
    table.insert(begun[first.host], first.member)
    shut(first.host)
    step_on(first)
  elseif one then
    r, at = r + 1, at + 1
    taken[at] = {one[2], one[3], one[4], now - one[5]}
    -- A page that waited for its host says nothing about the price of the others.
    if one[7] and not (is_paced and one[1] > 0 and one[5] < free_at[one[3]]) then L = L + math.max(-step, math.min(step, one[1])) end
    if one[8] then call('HINCRBY', P .. 'stats', 'leases_expired', 1) end
    shut(one[3])
  else break end
end
-- What was looked at and stays goes where it stands at the present price.
for j = r, c do
  local one = ready[j]
  local to = place(one[5])
  if j == r then wait = math.min(wait, math.max(0, one[5] - now)) end
  if not is_open(one[3]) then
    if one[6] <= now then put(one[2], place(next_turn(one[3])) + (one[8] and 1 or 0)) end
  elseif not one[8] and math.abs(to - one[6]) > 0.01 * math.abs(to - now) then put(one[2], to) end
end

-- What first visits leave behind.
for host, members in pairs(begun) do
  local suffix = pk('>I4', host)
  call('ZREM', P .. 'f:' .. host, unpack(members))
  call('ZREM', P .. 'f', members.head)
  local member, score = head_of(host)
  if member then
    if pause > 0 then call('ZADD', P .. 'w', free_at[host], suffix) else call('ZADD', P .. 'f', score, member .. suffix) end
  end
  for _, m_ in ipairs(members) do begun_ids[#begun_ids + 1] = sub(m_, RANK + 1) end
end
local values = #begun_ids > 0 and call('HMGET', P .. 'pages', unpack(begun_ids)) or {}
local of = {}
for i = 1, #begun_ids do of[begun_ids[i]] = values[i] end

local hosts, seen, ids = {}, {}, {}
local out, got = {'', {}, {}}, 0
for i = 1, at do
  local one = taken[i]
  local value = one[3] or of[one[1]]
  if value then
    got = got + 1
    ids[got] = one[1]
    out[3 + got] = one[1] .. pk('<dd', until_, one[4]) .. value
    put(one[1], until_)
    if not seen[one[2]] then seen[one[2]] = true; hosts[#hosts + 1] = one[2] end
  end
end
many('ZADD', P .. 'q', queue)
local turns = {}
for host in pairs(touched) do turns[#turns + 1], turns[#turns + 2] = host, pk('<dd', free_at[host], turn_at[host] or 0) end
many('HSET', P .. 'opens', turns)
if is_paced and pause <= 0 then
  for host, free in pairs(free_at) do if free > 0 and free <= now and not touched[host] then call('HDEL', P .. 'opens', host) end end
end
if got > 0 then
  out[3] = call('HMGET', P .. 'memory', unpack(ids))
  local names, words = call('HMGET', P .. 'hosts:names', unpack(hosts)), call('HMGET', P .. 'hosts:words', unpack(hosts))
  for i = 1, #hosts do out[2][3 * i - 2], out[2][3 * i - 1], out[2][3 * i] = hosts[i], names[i], words[i] end
  call('HINCRBY', P .. 'stats', 'dispatched', got)
end

tokens = tokens - got
if firsts[1] then wait = 0 end
if is_paced then
  local opens = call('ZRANGE', P .. 'w', 0, 0, 'WITHSCORES')
  if opens[2] then wait = math.min(wait, math.max(0, tonumber(opens[2]) - now)) end
end
if budget > 0 and tokens < 1 then wait = math.max(wait, (1 - tokens) / budget * 1e6) end
d[1], d[2], d[3], d[4] = now, budget > 0 and tokens or 1, discovery, L
write_state(d)
out[1] = pk('<ddddd', now, wait, L, d[6], d[7])
return out
