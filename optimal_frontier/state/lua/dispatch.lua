-- Hands out up to n requests under a lease: of those that are due first those that lose most by waiting, first visits for their share.
-- ARGV[1]  "<I4I4dddddd": n, most requests to a host (0: no limit), lease (s), budget (1/s; 0: none), most tokens, share of first visits (1
--          more: they come first, and share with pages of one wait only), host delay (s), host period (s; mean time between two requests
--          to a host) and "dddd": s for which a host waits to be told of the fetch's start (0: not at all), what the time should be (us; 0: unknown),
--          within how many us the server's clock is believed, run of the namespace (0: unknown; below 0: read a moment ago, so it is this one)
-- ARGV[2]  per host "<I4I4": hosts that take fewer requests than that now, and how many
-- Returns  {"<ddddddddd": now, wait (us; FAR: nothing to wait for), log price, number of the plan, pages forgotten, token, the server's own
--          time, run of the namespace as it was told, dispatches before this one (0, 0: this server has none of it); then lists: pages, lateness (us; below
--          0: early), stored values, memories (or nil); and of each host, in the order of these pages, its words (or none of any) and its
--          name}. O(log n) a page; a lease whose reply is lost runs out.
-- A page of the queue that is looked at goes out, or to where it stands at the present price, or to a turn of its host.
local min, max, number = math.min, math.max, tonumber
local n, per_host, lease, budget, bucket, share, delay, period, awaited, expected, within, run = up('<I4I4dddddddddd', ARGV[1])
local d = read_state()
local now, told = clock(d, expected, within)
if d[${D_AT}] == 0 then d[${D_AT}] = now end
local discovery, L, step, found, dispatches = d[${D_DISCOVERY}], d[${D_LOG_PRICE}], d[${D_STEP}], d[${D_RUN}], d[${D_DISPATCHES}]
local is_sure, run = run < 0, math.abs(run)
-- After a time in which nobody could renew leases, they are spared for as long as one lasts. Live crawlers call every 5 s at least.
if run > 0 and dispatches > 0 and now - d[${D_AT}] > max(lease * 5e5, 6e6) then call('SET', P .. 'grace', 1, 'PX', floor(lease * 1000)) end
local is_spared = run > 0 and call('EXISTS', P .. 'grace') == 1
-- Pages looked at beyond one a request, and in all about; pages of a shut host at one of its turns; microseconds by which a host may catch up.
local SPARE, MOST, RIVALS, CATCH_UP = ${SPARE}, ${MOST_LOOKED_AT}, ${RIVALS}, 20000
-- A page whose update time has come, or that was pinged, goes before pages worth the price times e or less.
local TIMED, SIGNALLED, AT_ITS_TIME, COLUMN, FLAGS, FLAGS_AT = ${TIMED}, ${SIGNALLED}, 1, 1024, '<Bdffff', ${STATE_AT} + 1
local is_first_pass, kept, share = share >= 1 and call('EXISTS', P .. 'f') == 1, 0, share % 1
local function is_kept(value) -- in a first pass pinned pages and hubs keep their times, and forced pages are not put off
  local e, l, _, least, most = up('<fffff', value, ${E_AT})
  return e == l and (l == 0 or least >= most) or floor(string.byte(value, FLAGS_AT) / ${HUB}) % 2 == 1
end
local tokens = budget > 0 and min(bucket, d[${D_TOKENS}] + budget * (now - d[${D_AT}]) / 1e6) or n
local want, pause = max(0, min(n, floor(tokens + 1e-9))), max(delay, period) * 1e6
local is_paced, room = pause > 0 or call('EXISTS', P .. 'opens') == 1, {}
if pause > 0 then per_host = 1 elseif per_host == 0 then per_host = FAR end
for i = 1, #ARGV[2], 8 do room[sub(ARGV[2], i, i + 3)] = up('<I4', ARGV[2], i + 4) end
-- When hosts (by 4 bytes, as rows have them) are free, the last turn that is taken there, until when the start of a fetch is awaited, and
-- when they open: one whose fetch has not begun is looked at again soon. Written once, if it moved.
local free, turn, waits, opens, moved, AWAITED = {}, {}, {}, {}, {}, 50000
local function set(host, at, last, until_)
  free[host], turn[host], waits[host], opens[host] = at, last, until_, until_ > now and max(at, min(until_, now + AWAITED)) or at
end
local function learn_hosts(hosts)
  local asked, k = {}, 0
  for i = 1, #hosts do if not free[hosts[i]] then asked[k + 1], k = hosts[i], k + 1; set(hosts[i], 0, 0, 0) end end
  local kept = is_paced and read('opens', asked) or {}
  for i = 1, #kept do if kept[i] then set(asked[i], up(TURNS, kept[i] .. NONE)) end end
end
local is_bound = is_paced or per_host < FAR or #ARGV[2] > 0
local function is_open(host) return opens[host] <= now and (room[host] or per_host) > 0 end
local function start(host)
  room[host] = (room[host] or per_host) - 1
  if pause <= 0 then return end
  local late = free[host] > 0 and min(now - free[host], CATCH_UP) or 0
  moved[host] = true
  set(host, now + max(delay * 1e6, period * 1e6 - min(period * 1e6, late)), turn[host], awaited > 0 and now + awaited * 1e6 or 0)
end
-- Candidates among pages that were attempted before, or whose lease ran out: columns, as a table of each costs more than all the rest.
local wait, queue, m, c, over, from, last, looks = want > 0 and FAR or 0, {}, 0, 0, 0, 0, FAR, MOST + 1 - 2 * want
local ready, id, host_of, row, score_of, due, gain, keeps = {}, {}, {}, {}, {}, {}, {}, {}
local function put(page, score) queue[m + 1], queue[m + 2], m = format('%d', score), page, m + 2 end
local function put_off(page, host, score, is_kept)
  local open = max(opens[host], now + 10000)
  local at = max(turn[host], open)
  if is_kept and kept < RIVALS then kept = kept + 1; put(page, place(open))
  elseif score <= now then put(page, place(at) + score % 2); turn[host], moved[host] = at + max(pause / RIVALS, 10000), true end
  wait = min(wait, open - now)
end
while want > 0 and c - over < want and looks > 0 and from < 256 do
  local some, ids, scores, hosts, k = call('ZRANGE', P .. 'q', from, from + want + SPARE - 1, 'WITHSCORES'), {}, {}, {}, 0
  for i = 1, #some, 2 do
    last = number(some[i + 1])
    if last <= now and last % 2 == 1 and is_spared then wait = min(wait, 1e6)
    elseif last <= now or last % 2 == 0 then k, ids[k + 1], scores[k + 1] = k + 1, some[i], last
    elseif last - now < wait then wait = last - now end
  end
  local rows = read('pages', ids)
  for i = 1, is_bound and k or 0 do hosts[i] = sub(rows[i] or '', 1, 4) end
  learn_hosts(hosts); looks = looks - k
  for i = 1, k do
    local value, score, host = rows[i], scores[i], hosts[i]
    if not value or #value < HEAD then call('ZREM', P .. 'q', ids[i])
    elseif is_bound and not is_open(host) then put_off(ids[i], host, score, is_first_pass and score <= now and score % 2 == 0 and is_kept(value))
    else
      local flags, b, a, s, e, l = up(FLAGS, value, FLAGS_AT)
      local at, late, moves, first = now, 1e6, false, score % 2 == 1 and now or b + e * 1e6
      if score % 2 == 0 then
        local free_wait = a + s * L
        at, moves = deadline(L, b, a, s, e, l), s > 0 and free_wait > e and free_wait < l
        late = moves and (now - at) / 1e6 / s or 2 * (now - at) / (at - b + 1)
        moves = moves or late > ${STARVED} and e < l and free_wait <= e
        if late ~= late then at, late, moves, first = now, 0, false, now end -- a damaged row: its reader puts it aside
        if late >= 0 and (flags % (2 * TIMED) >= TIMED or flags % (2 * SIGNALLED) >= SIGNALLED and e == l) then late = late + AT_ITS_TIME end
      end
      if first > now then
        wait = min(wait, first - now); if first > score then put(ids[i], place(first)) end
      else
        c, id[c + 1], row[c + 1], score_of[c + 1], due[c + 1], host_of[c + 1] = c + 1, ids[i], value, score, at, host
        if moves then gain[c] = late > step and step or late < -step and -step or late end
        keeps[c] = is_first_pass and late >= 0 and score % 2 == 0 and is_kept(value)
        if is_first_pass and late >= 0 and not keeps[c] then over = over + 1 end
        -- By lateness in millionths, then as they stand in the queue: one number each, as sorting by a function takes longer.
        late = keeps[c] and -2e12 or late > 1e6 and -1e12 or late > -1e6 and -1e6 * late or 1e12
        ready[c] = (late - late % 1) * COLUMN + c
      end
    end
  end
  from = #some < 2 * (want + SPARE) and FAR or from + want + SPARE
end
if c - over < want and looks <= 0 and last <= now then wait = 0 end -- what is due behind those of shut hosts is next
table.sort(ready)
-- First visits: the next page of each open host, by rank, best last; hosts whose pages rank alike take turns. It is read with the one after
-- it, by which the host stands in f then; where hosts are few, four are read at a time. Of no more hosts than can have one: pages that are
-- due now go before first visits, but for the share of these.
local firsts, begun, standing, emptied, further, due_now = {}, {}, {}, {}, 1, 0
while (ready[due_now + 1] or COLUMN) < COLUMN do due_now = due_now + 1 end
local saved = floor(discovery + share * want)
local most = is_first_pass and want or saved < 1 and c >= want and due_now > 0 and 0 or min(want, max(0, want - due_now) + saved)
local function line_up(one)
  local list, at, i = one.list, 2 * one.n, 1
  local told = list[at + 1] and {} or call('ZRANGE', P .. 'f:' .. one.number, one.n, one.n + further, 'WITHSCORES')
  for i = 1, #told do list[at + i] = told[i] end
  one.id, one.rank = list[at + 1], number(list[at + 2])
  if not one.id or not is_open(one.host) then return end
  while firsts[i] and firsts[i].rank > one.rank do i = i + 1 end
  table.insert(firsts, i, one)
end
local function stand(host, at) standing[#standing + 1], standing[#standing + 2] = format('%d', at), host end
for from = 0, most > 0 and want + #ARGV[2] / 8 or -1, want + SPARE do
  local numbers, hosts = call('ZRANGEBYSCORE', P .. 'f', '-inf', now, 'LIMIT', from, want + SPARE), {}
  for i = 1, #numbers do hosts[i] = pk('<I4', numbers[i]) end
  learn_hosts(hosts); further = #numbers < want and 3 or 1
  for i, host in ipairs(hosts) do
    if opens[host] > now then stand(numbers[i], opens[host])
    elseif #begun < most + SPARE and is_open(host) then
      begun[#begun + 1] = {host = host, number = numbers[i], list = {}, n = 0}
      line_up(begun[#begun])
    end
  end
  if #begun >= most or #numbers < want + SPARE then break end
end
local ids, late, values, fresh, r, got, expired = {}, {}, {}, {}, 1, 0, 0
while got < want do
  local i, first, is_due = ready[r], firsts[#firsts], (ready[r] or COLUMN) < COLUMN
  i = i and i % COLUMN
  if i and is_bound and not is_open(host_of[i]) then put_off(id[i], host_of[i], score_of[i], keeps[i]); r = r + 1
  elseif first and not is_open(first.host) then firsts[#firsts] = nil
  elseif first and (not is_due or is_first_pass and not keeps[i] or discovery + share >= 1) then
    if is_due then discovery = max(0, min(1 + share, discovery + share) - 1) end
    got, firsts[#firsts], first.n, fresh[#fresh + 1], ids[got + 1], late[got + 1] = got + 1, nil, first.n + 1, first.id, first.id, 0
    start(first.host); line_up(first)
  elseif i then
    discovery, r, got, expired = discovery + (first and share or 0), r + 1, got + 1, expired + score_of[i] % 2
    ids[got], late[got], values[got] = id[i], now - due[i], row[i]
    -- A page that waited for its host says nothing about the price of the others.
    if gain[i] and not (is_paced and gain[i] > 0 and due[i] < free[host_of[i]]) then L = L + gain[i] end
    if is_bound then start(host_of[i]) end
  else break end
end
for j = r, c do
  local i, is_passed = ready[j] % COLUMN, is_first_pass and fresh[1] and ready[j] < COLUMN
  -- Pages that first visits went before are looked at again after half of their lateness, 5 s at most, so that they hide no pinned ones.
  local to = place(is_passed and not keeps[i] and now + min((now - due[i]) / 2, 5e6) or due[i])
  local is_shut = is_bound and not is_open(host_of[i])
  if is_shut then put_off(id[i], host_of[i], score_of[i], keeps[i]) else wait = min(wait, max(0, due[i] - now)) end
  local is_other = score_of[i] % 2 == 0 and score_of[i] ~= FRONT and math.abs(to - score_of[i]) > 0.01 * math.abs(to - now)
  if is_other and not is_shut then put(id[i], to) end
end
-- First visits leave their queue, and all that go out stand as leased.
for _, one in ipairs(begun) do
  local gone = {}
  for i = 1, one.n do gone[i] = one.list[2 * i - 1] end
  many('ZREM', 'f:' .. one.number, gone)
  if not one.id then emptied[#emptied + 1] = one.number
  elseif one.n > 0 then stand(one.number, pause > 0 and free[one.host] or one.rank) end
end
many('ZADD', 'f', standing); many('ZREM', 'f', emptied)
local rows, turns, k = read('pages', fresh), {}, 0
local token, hosts, seen = format('%d', floor((now + lease * 1e6) / 2) * 2 + 1), {}, {}
for i = 1, got do
  if not values[i] then values[i], k = rows[k + 1] or '', k + 1 end
  queue[m + 1], queue[m + 2], m = token, ids[i], m + 2
  local host = #values[i] < 4 and '\0\0\0\0' or sub(values[i], 1, 4)
  if not seen[host] then hosts[#hosts + 1], seen[host] = format('%d', (up('<I4', host))), true end
end
many('ZADD', 'q', queue)
for host in pairs(moved) do turns[#turns + 1], turns[#turns + 2] = host, pk(TURNS, free[host], turn[host], waits[host]) end
many('HSET', 'opens', turns)
for host, at in pairs(pause <= 0 and free or {}) do if at > 0 and opens[host] <= now and not moved[host] then call('HDEL', P .. 'opens', host) end end
store_counts({dispatched = got, leases_expired = expired})
local next_open = is_paced and call('ZRANGE', P .. 'f', 0, 0, 'WITHSCORES')[2]
if next_open and tonumber(next_open) > now then wait = min(wait, next_open - now) elseif firsts[1] or #begun > most then wait = 0 end
if budget > 0 and tokens - got < 1 then wait = max(wait, (1 - tokens + got) / budget * 1e6) end
d[${D_AT}], d[${D_CLOCK}], d[${D_TOKENS}], d[${D_DISCOVERY}], d[${D_LOG_PRICE}] = now, told, budget > 0 and tokens - got or 1, discovery, L
if run > 0 then d[${D_RUN}], d[${D_DISPATCHES}] = (is_sure or found == 0) and run or found, dispatches + 1 end
write_state(d)
return {pk('<ddddddddd', now, wait, L, d[${D_PLAN}], d[${D_FORGOTTEN}], token, told, found, dispatches), ids, late, values, read('memory', ids),
  call('EXISTS', P .. 'hosts:words') == 1 and read('hosts:words', hosts) or {}, read('hosts:names', hosts)}
