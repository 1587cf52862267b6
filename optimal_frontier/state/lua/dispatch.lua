-- Hands out up to n requests under a lease: of those that are due first those that lose most by waiting, first visits for their share.
-- ARGV[1]  "<I4I4ddddd": n, most requests to a host (0: no limit), lease (s), budget (1/s; 0: none), share of first visits (1: they come
--          first), host delay (s), host period (s; mean time between two requests to a host)
-- ARGV[2]  per host "<I4I4": hosts that take fewer requests than that now, and how many
-- Returns  {"<ddddd": now, wait (us; FAR: nothing to wait for), log price, number of the plan, pages forgotten; hosts: number, name, words
--          (or nil) of each; memory of each page (or nil)}, then per page: page, "<dd" token and lateness (us; below 0: early), stored
--          value. O(log n) a page; a lease whose reply is lost runs out.
-- A page of the queue that is looked at goes out, or to where it stands at the present price, or to a turn of its host.
local n, per_host, lease, budget, share, delay, period = up('<I4I4ddddd', ARGV[1])
local d = read_state()
local now, discovery, L, step = clock(d[1]), d[3], d[4], d[5]
-- Pages looked at beyond two a request; pages of a shut host at one of its turns; microseconds by which a host may catch up.
local SPARE, RIVALS, CATCH_UP = ${SPARE}, ${RIVALS}, 20000
local tokens = budget > 0 and math.min(math.max(1, 0.1 * budget), d[2] + budget * (now - d[1]) / 1e6) or n
local want, pause = math.min(n, floor(tokens + 1e-9)), math.max(delay, period) * 1e6
local is_paced, room = pause > 0 or call('EXISTS', P .. 'opens') == 1, {}
if pause > 0 then per_host = 1 elseif per_host == 0 then per_host = FAR end
for i = 1, #ARGV[2], 8 do
  local host, left = up('<I4I4', ARGV[2], i)
  room[host] = left
end

-- When hosts are free, and the last turn that is taken there; written once, if it moved.
local free, turn, moved = {}, {}, {}
local function learn_hosts(hosts)
  local asked = {}
  for _, host in pairs(hosts) do
    if not free[host] then asked[#asked + 1], free[host], turn[host] = host, 0, 0 end
  end
  local told = is_paced and asked[1] and call('HMGET', P .. 'opens', unpack(asked)) or {}
  for i = 1, #asked do if told[i] then free[asked[i]], turn[asked[i]] = up('<dd', told[i]) end end
end
local function is_open(host) return free[host] <= now and (room[host] or per_host) >= 1 end
local function take_turn(host)
  local mine = math.max(turn[host], free[host], now + 10000)
  turn[host], moved[host] = mine + math.max(pause / RIVALS, 10000), true
  return mine
end
local function start(host)
  room[host] = (room[host] or per_host) - 1
  if pause <= 0 then return end
  local late = free[host] > 0 and math.min(now - free[host], CATCH_UP) or 0
  free[host], moved[host] = now + math.max(delay * 1e6, period * 1e6 - math.min(period * 1e6, late)), true
end

-- Candidates among pages that were attempted before, or whose lease ran out.
local wait, queue, m, ready, c, from = want > 0 and FAR or 0, {}, 0, {}, 0, 0
local function put(id, score) queue[m + 1], queue[m + 2], m = score, id, m + 2 end
local function put_off(one)
  if one.score <= now then put(one.id, place(take_turn(one.host)) + (one.lost and 1 or 0)) end
  wait = math.min(wait, math.max(0, math.max(free[one.host], now + 10000) - now))
end
while want > 0 and c < want and from < 4 * want + 256 do
  local size = 2 * want + SPARE
  local some, ids, scores, hosts = call('ZRANGE', P .. 'q', from, from + size - 1, 'WITHSCORES'), {}, {}, {}
  for i = 1, #some, 2 do
    local score = tonumber(some[i + 1])
    if score <= now or score % 2 == 0 then ids[#ids + 1], scores[#scores + 1] = some[i], score
    else wait = math.min(wait, score - now) end
  end
  local rows = ids[1] and call('HMGET', P .. 'pages', unpack(ids)) or {}
  for i = 1, #ids do hosts[i] = rows[i] and up('<I4', rows[i]) or nil end
  learn_hosts(hosts)
  for i = 1, #ids do
    if not rows[i] then call('ZREM', P .. 'q', ids[i]) else
      local host, _, _, b, a, s, e, l = up(QUEUE, rows[i])
      local one = {id = ids[i], host = host, row = rows[i], score = scores[i], lost = scores[i] % 2 == 1, due = now, z = 1e9}
      local first = one.lost and now or b + e * 1e6
      if not one.lost then
        one.due = deadline(L, b, a, s, e, l)
        one.free = s > 0 and a + s * L > e and a + s * L < l
        one.z = one.free and (now - one.due) / 1e6 / s or 2 * (now - one.due) / (one.due - b + 1)
      end
      if not is_open(host) then put_off(one)
      elseif first <= now then c, ready[c + 1] = c + 1, one
      else
        wait = math.min(wait, first - now)
        if first > one.score then put(one.id, place(first)) end
      end
    end
  end
  if #some < 2 * size then break end
  from = from + size
end
table.sort(ready, function(x, y) return x.z > y.z or x.z == y.z and x.id < y.id end)

-- First visits: the first page of each open host, by rank; the next ones of a host as they are taken.
local firsts, begun = {}, {}
local function line_up(host, at)
  local list = begun[host].list
  local one = {host = host, id = list[2 * at - 1], rank = tonumber(list[2 * at] or nil), at = at}
  if not one.id or not is_open(host) then return end
  local i = 1
  while firsts[i] and (firsts[i].rank < one.rank or firsts[i].rank == one.rank and firsts[i].id < one.id) do i = i + 1 end
  table.insert(firsts, i, one)
end
if want > 0 and (share >= 1 or discovery + share * want >= 1 or c < want or ready[1].z < 0) then
  local hosts = call('ZRANGEBYSCORE', P .. 'f', '-inf', now, 'LIMIT', 0, want + #ARGV[2] / 8 + SPARE)
  for i = 1, #hosts do hosts[i] = tonumber(hosts[i]) end
  learn_hosts(hosts)
  for _, host in ipairs(hosts) do
    if free[host] > now then call('ZADD', P .. 'f', free[host], host)
    elseif is_open(host) then
      begun[host] = {list = call('ZRANGE', P .. 'f:' .. host, 0, pause > 0 and 0 or want - 1, 'WITHSCORES'), n = 0}
      line_up(host, 1)
    end
  end
end

local taken, r = {}, 1
while #taken < want do
  local one, first = ready[r], firsts[1]
  local due_now = one and one.z >= 0
  if one and not is_open(one.host) then
    r = r + 1
    put_off(one)
  elseif first and (not due_now or share >= 1 or discovery + share >= 1) then
    if due_now then discovery = math.max(0, math.min(1 + share, discovery + share) - 1) end
    table.remove(firsts, 1)
    begun[first.host].n = first.at
    taken[#taken + 1] = first
    start(first.host)
    line_up(first.host, first.at + 1)
  elseif one then
    if first then discovery = discovery + share end
    r, taken[#taken + 1] = r + 1, one
    -- A page that waited for its host says nothing about the price of the others.
    if one.free and not (one.z > 0 and one.due < free[one.host]) then L = L + math.max(-step, math.min(step, one.z)) end
    if one.lost then call('HINCRBY', P .. 'stats', 'leases_expired', 1) end
    start(one.host)
  else break end
end
for j = r, c do
  local one = ready[j]
  local to = place(one.due)
  if not is_open(one.host) then put_off(one)
  else
    wait = math.min(wait, math.max(0, one.due - now))
    if not one.lost and math.abs(to - one.score) > 0.01 * math.abs(to - now) then put(one.id, to) end
  end
end

local token, ids, hosts, out, fresh = floor((now + lease * 1e6) / 2) * 2 + 1, {}, {}, {'', {}, {}}, {}
for host, one in pairs(begun) do
  local gone = {}
  for i = 1, one.n do gone[i], fresh[#fresh + 1] = one.list[2 * i - 1], one.list[2 * i - 1] end
  many('ZREM', P .. 'f:' .. host, gone)
  if one.n > 0 then sync_first(host, pause > 0 and free[host] or nil) end
end
local rows = fresh[1] and call('HMGET', P .. 'pages', unpack(fresh)) or {}
for i = 1, #fresh do fresh[fresh[i]] = rows[i] end
for _, one in ipairs(taken) do
  local row = one.row or fresh[one.id]
  if row then
    ids[#ids + 1] = one.id
    out[#ids + 3] = one.id .. pk('<dd', token, now - (one.due or now)) .. row
    put(one.id, token)
    if not hosts[-one.host] then hosts[#hosts + 1], hosts[-one.host] = one.host, true end
  end
end
many('ZADD', P .. 'q', queue)
local turns = {}
for host in pairs(moved) do turns[#turns + 1], turns[#turns + 2] = host, pk('<dd', free[host], turn[host]) end
many('HSET', P .. 'opens', turns)
for host, at in pairs(free) do if at > 0 and at <= now and not moved[host] and pause <= 0 then call('HDEL', P .. 'opens', host) end end
if ids[1] then
  out[3] = call('HMGET', P .. 'memory', unpack(ids))
  local names, words = call('HMGET', P .. 'hosts:names', unpack(hosts)), call('HMGET', P .. 'hosts:words', unpack(hosts))
  for i = 1, #hosts do out[2][3 * i - 2], out[2][3 * i - 1], out[2][3 * i] = hosts[i], names[i], words[i] end
  call('HINCRBY', P .. 'stats', 'dispatched', #ids)
end
tokens = tokens - #ids
local opens = is_paced and call('ZRANGE', P .. 'f', 0, 0, 'WITHSCORES')[2] or firsts[1] and 0
if opens and tonumber(opens) > 0 then wait = math.min(wait, math.max(0, opens - now)) elseif firsts[1] then wait = 0 end
if budget > 0 and tokens < 1 then wait = math.max(wait, (1 - tokens) / budget * 1e6) end
d[1], d[2], d[3], d[4] = now, budget > 0 and tokens or 1, discovery, L
write_state(d)
out[1] = pk('<ddddd', now, wait, L, d[6], d[7])
return out
