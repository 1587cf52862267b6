-- Hands out up to n requests under a lease: of those that are due first those that lose most by waiting, first visits for their share.
-- ARGV[1]  "<I4I4ddddd": n, most requests to a host (0: no limit), lease (s), budget (1/s; 0: none), share of first visits (1 more: they
--          come first, and share with pages of one wait only), host delay (s), host period (s; mean time between two requests to a host)
-- ARGV[2]  per host "<I4I4": hosts that take fewer requests than that now, and how many
-- Returns  {"<dddddd": now, wait (us; FAR: nothing to wait for), log price, number of the plan, pages forgotten, token; then lists: pages,
--          lateness (us; below 0: early), stored values, memories (or nil), and of each host in the order of these pages name and words
--          (or nil)}. O(log n) a page; a lease whose reply is lost runs out.
-- A page of the queue that is looked at goes out, or to where it stands at the present price, or to a turn of its host.
local n, per_host, lease, budget, share, delay, period = up('<I4I4ddddd', ARGV[1])
local d = read_state()
local now, discovery, L, step = clock(d[1]), d[3], d[4], d[5]
-- Pages looked at beyond one a request; pages of a shut host at one of its turns; microseconds by which a host may catch up.
local SPARE, RIVALS, CATCH_UP = ${SPARE}, ${RIVALS}, 20000
-- A page whose update time has come goes before pages worth the price times e or less: its lateness is no share of an interval.
local TIMED, AT_ITS_TIME, KEPT = ${TIMED}, 1, 2e9
-- In a first pass pinned pages keep their times, and forced ones are not put off (KEPT on top of their rank).
local is_first_pass, kept, share = share >= 1 and call('EXISTS', P .. 'f') == 1, 0, share % 1
local tokens = budget > 0 and math.min(math.max(1, 0.1 * budget), d[2] + budget * (now - d[1]) / 1e6) or n
local want, pause = math.min(n, floor(tokens + 1e-9)), math.max(delay, period) * 1e6
local is_paced, room = pause > 0 or call('EXISTS', P .. 'opens') == 1, {}
if pause > 0 then per_host = 1 elseif per_host == 0 then per_host = FAR end
for i = 1, #ARGV[2], 8 do room[up('<I4', ARGV[2], i)] = up('<I4', ARGV[2], i + 4) end
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
local is_bound = is_paced or per_host < FAR or #ARGV[2] > 0
local function is_open(host) return (free[host] or 0) <= now and (room[host] or per_host) >= 1 end
local function take_turn(host)
  local mine = math.max(turn[host] or 0, free[host] or 0, now + 10000)
  turn[host], moved[host] = mine + math.max(pause / RIVALS, 10000), true; return mine
end
local function start(host)
  room[host] = (room[host] or per_host) - 1
  if pause <= 0 then return end
  local late = free[host] > 0 and math.min(now - free[host], CATCH_UP) or 0
  free[host], moved[host] = now + math.max(delay * 1e6, period * 1e6 - math.min(period * 1e6, late)), true
end
-- Candidates among pages that were attempted before, or whose lease ran out: columns, as a table of each costs more than all the rest.
local wait, queue, m, c, over, from = want > 0 and FAR or 0, {}, 0, 0, 0, 0
local ready, id, host_of, row, score_of, due, z, is_free, is_lost = {}, {}, {}, {}, {}, {}, {}, {}, {}
local function put(page, score) queue[m + 1], queue[m + 2], m = score, page, m + 2 end
local function put_off(page, host, score, is_kept)
  kept = kept + (is_kept and 1 or 0)
  local at_once = is_kept and kept <= RIVALS and math.max(free[host] or 0, now + 10000)
  if score <= now then put(page, place(at_once or take_turn(host)) + score % 2) end
  wait = math.min(wait, math.max((free[host] or 0) - now, 10000))
end
while want > 0 and c - over < want and from < 4 * want + 256 do
  local some, ids, scores, hosts, n_ids = call('ZRANGE', P .. 'q', from, from + want + SPARE - 1, 'WITHSCORES'), {}, {}, {}, 0
  for i = 1, #some, 2 do
    local score = tonumber(some[i + 1])
    if score <= now or score % 2 == 0 then n_ids, ids[n_ids + 1], scores[n_ids + 1] = n_ids + 1, some[i], score
    elseif score - now < wait then wait = score - now end
  end
  local rows = n_ids > 0 and call('HMGET', P .. 'pages', unpack(ids)) or {}
  for i = 1, is_paced and n_ids or 0 do hosts[i] = rows[i] and #rows[i] >= HEAD and up('<I4', rows[i]) or nil end
  learn_hosts(hosts)
  for i = 1, n_ids do
    local score = scores[i]
    if not rows[i] or #rows[i] < HEAD then call('ZREM', P .. 'q', ids[i]) else
      local host, _, flags, b, a, s, e, l = up(QUEUE, rows[i])
      local lost, at, late, moves = score % 2 == 1, now, 1e9, false
      local first = lost and now or b + e * 1e6
      if not lost then
        at, moves = deadline(L, b, a, s, e, l), s > 0 and a + s * L > e and a + s * L < l
        late = moves and (now - at) / 1e6 / s or 2 * (now - at) / (at - b + 1)
        moves = moves or late > ${STARVED} and e < l and a + s * L <= e
        if late >= 0 and flags % (2 * TIMED) >= TIMED then late = late + AT_ITS_TIME end
        local least, most = up('<ff', rows[i], ${BOUNDS_AT})
        if is_first_pass and late >= 0 and e == l and (l == 0 or least >= most) then late = late + KEPT end
      end
      if is_bound and not is_open(host) then put_off(ids[i], host, score, late >= KEPT)
      elseif first <= now then
        c, ready[c + 1], id[c + 1], host_of[c + 1], row[c + 1] = c + 1, c + 1, ids[i], host, rows[i]
        score_of[c], due[c], z[c], is_free[c], is_lost[c] = score, at, late, moves, lost
        if is_first_pass and late >= 0 and late < KEPT then over = over + 1 end
      else
        if first - now < wait then wait = first - now end
        if first > score then put(ids[i], place(first)) end
      end
    end
  end
  from = #some < 2 * (want + SPARE) and FAR or from + want + SPARE
end
table.sort(ready, function(x, y) return z[x] > z[y] or z[x] == z[y] and x < y end)
-- First visits: the first page of each open host, by rank; the next ones of a host as they are taken.
local firsts, begun = {}, {}
local function line_up(host, at)
  local list, i = begun[host].list, 1
  local one = {host = host, id = list[2 * at - 1], rank = tonumber(list[2 * at] or nil), at = at}
  if not one.id or not is_open(host) then return end
  while firsts[i] and (firsts[i].rank < one.rank or firsts[i].rank == one.rank and firsts[i].id < one.id) do i = i + 1 end
  table.insert(firsts, i, one)
end
if want > 0 and (is_first_pass or discovery + share * want >= 1 or c < want or z[ready[1]] < 0) then
  local hosts = call('ZRANGEBYSCORE', P .. 'f', '-inf', now, 'LIMIT', 0, want + #ARGV[2] / 8 + SPARE)
  for i = 1, #hosts do hosts[i] = tonumber(hosts[i]) end
  learn_hosts(hosts)
  for _, host in ipairs(hosts) do
    if free[host] > now then call('ZADD', P .. 'f', free[host], host)
    elseif is_open(host) then
      begun[host] = {list = call('ZRANGE', P .. 'f:' .. host, 0, pause > 0 and 0 or want, 'WITHSCORES'), n = 0}
      if begun[host].list[1] then line_up(host, 1) else call('ZREM', P .. 'f', host) end
    end
  end
end
local ids, late, values, fresh, r, got = {}, {}, {}, {}, 1, 0
while got < want do
  local i, first = ready[r], firsts[1]
  local due_now = i and z[i] >= 0
  if i and is_bound and not is_open(host_of[i]) then
    put_off(id[i], host_of[i], score_of[i], z[i] >= KEPT)
    r = r + 1
  elseif first and not is_open(first.host) then table.remove(firsts, 1)
  elseif first and (not due_now or is_first_pass and z[i] < KEPT or discovery + share >= 1) then
    if due_now then discovery = math.max(0, math.min(1 + share, discovery + share) - 1) end
    table.remove(firsts, 1)
    begun[first.host].n = first.at
    got, fresh[#fresh + 1], ids[got + 1], late[got + 1] = got + 1, first.id, first.id, 0
    start(first.host); line_up(first.host, first.at + 1)
  elseif i then
    discovery, r, got = discovery + (first and share or 0), r + 1, got + 1
    ids[got], late[got], values[got] = id[i], now - due[i], row[i]
    -- A page that waited for its host says nothing about the price of the others.
    if is_free[i] and not (z[i] > 0 and due[i] < (free[host_of[i]] or 0)) then L = L + math.max(-step, math.min(step, z[i])) end
    if is_lost[i] then call('HINCRBY', P .. 'stats', 'leases_expired', 1) end
    if is_bound then start(host_of[i]) end
  else break end
end
for j = r, c do local i = ready[j]
  -- Pages that first visits went before are looked at again after half of their lateness, so that they do not hide pinned ones.
  local to = place(is_first_pass and fresh[1] and z[i] >= 0 and z[i] < KEPT and now + (now - due[i]) / 2 or due[i])
  if is_bound and not is_open(host_of[i]) then put_off(id[i], host_of[i], score_of[i], z[i] >= KEPT)
  else
    wait = math.min(wait, math.max(0, due[i] - now))
    if not is_lost[i] and math.abs(to - score_of[i]) > 0.01 * math.abs(to - now) then put(id[i], to) end
  end
end
-- First visits leave their queue, and all that go out stand as leased.
for host, one in pairs(begun) do
  local gone = {}
  for i = 1, one.n do gone[i] = one.list[2 * i - 1] end
  many('ZREM', P .. 'f:' .. host, gone)
  if one.n > 0 then sync_first(host, pause > 0 and free[host] or nil) end
end
local rows = fresh[1] and call('HMGET', P .. 'pages', unpack(fresh)) or {}
for i = 1, #fresh do fresh[fresh[i]] = rows[i] or '' end
local until_, hosts, seen, memories, names, words = floor((now + lease * 1e6) / 2) * 2 + 1, {}, {}, {}, {}, {}
local token = string.format('%.0f', until_)
for i = 1, got do
  values[i] = values[i] or fresh[ids[i]]; put(ids[i], token)
  local host = #values[i] > 0 and up('<I4', values[i]) or 0
  if not seen[host] then hosts[#hosts + 1], seen[host] = host, true end
end
many('ZADD', P .. 'q', queue); local turns = {}
for host in pairs(moved) do turns[#turns + 1], turns[#turns + 2] = host, pk('<dd', free[host] or 0, turn[host] or 0) end
many('HSET', P .. 'opens', turns)
for host, at in pairs(free) do if at > 0 and at <= now and not moved[host] and pause <= 0 then call('HDEL', P .. 'opens', host) end end
if got > 0 then
  memories, names = call('HMGET', P .. 'memory', unpack(ids)), call('HMGET', P .. 'hosts:names', unpack(hosts))
  words = call('EXISTS', P .. 'hosts:words') == 1 and call('HMGET', P .. 'hosts:words', unpack(hosts)) or {}
  call('HINCRBY', P .. 'stats', 'dispatched', got)
end
local opens = is_paced and call('ZRANGE', P .. 'f', 0, 0, 'WITHSCORES')[2]
if opens and tonumber(opens) > now then wait = math.min(wait, opens - now) elseif firsts[1] then wait = 0 end
if budget > 0 and tokens - got < 1 then wait = math.max(wait, (1 - tokens + got) / budget * 1e6) end
d[1], d[2], d[3], d[4] = now, budget > 0 and tokens - got or 1, discovery, L; write_state(d)
return {pk('<dddddd', now, wait, L, d[6], d[7], until_), ids, late, values, memories, names, words}
