-- Hands out up to n requests under a lease: of those that are due first those that lose most by waiting, first visits for their share.
-- ARGV[1]  "<I4I4I4" and doubles: what is asked, see `Ask` and `Belief` in partition.py; bucket: most tokens
-- ARGV[2]  per host "<I4I4": hosts that take fewer requests than that now, and how many
-- Returns  {doubles; lists of pages, stored values, memories; of each host, in the order of these pages, its words; its name}, no memories
--          and no words where nobody has any (see `parse_dispatch`). O(log n) a page; a lease whose reply is lost runs out.
-- A page of the queue that is looked at goes out, or to where it stands at the present price, or to a turn of its host.
local n, per_host, drawn, lease, budget, bucket, share, delay, period, awaited, expected, within, run = up('<I4I4I4dddddddddd', ARGV[1])
local d = read_state()
local pause, now, told = max(delay, period) * 1e6, clock(d, expected, within)
if d[${D_AT}] == 0 then d[${D_AT}] = now end
local discovery, ranked_at, step, found, dispatches = d[${D_DISCOVERY}], d[${D_LOG_PRICE}], d[${D_STEP}], d[${D_RUN}], d[${D_DISPATCHES}]
-- After a time in which nobody could renew leases, they are spared for as long as one lasts. Live crawlers call every 5 s at least.
if (run ~= 0 or drawn > 0) and dispatches > 0 and now - d[${D_AT}] > max(lease * 5e5, 6e6) then call('SET', P .. 'grace', 1, 'PX', floor(lease * 1000)) end
-- At most times there is none of these: then one question is enough. Of turns nobody asks where all hosts have a pause: they are read.
local is_special = call('EXISTS', P .. 'grace', P .. 'f', P .. (pause > 0 and 'f' or 'opens')) > 0
local function is_there(key) return is_special and call('EXISTS', P .. key) == 1 end
local is_spared, has_first = run ~= 0 and is_there('grace'), is_there('f')
local L, is_first_pass, has_kept, share = ranked_at, share >= 1 and has_first, has_first and (share >= 1 or discovery >= 1), share % 1
-- Where the hosts of first visits had no turn these save their share up. Then each fifth turn or so is for what is due, as in a long pass.
local most_saved, is_turn_of_due = is_first_pass and 0 or 1 + share * (budget > 0 and ${SAVED} * budget or n), floor(now / 1009) % 5 == 0
discovery = min(discovery, most_saved + 1)
local tokens = budget > 0 and min(bucket, d[${D_TOKENS}] + budget * (now - d[${D_AT}]) / 1e6) - drawn or n
local want, awaits = max(0, min(n, floor(tokens + 1e-9))), awaited > 0 and now + awaited * 1e6 or 0
-- Hosts, by 4 bytes as rows have them: turns, when each opens, requests that it takes, whether turns have moved. Lists, as names cost most.
local hosts, learned, rooms, is_paced = {}, new_list(), {}, pause > 0 or is_there('opens')
local is_bound, most_of_host = is_paced or per_host > 0 or #ARGV[2] > 0, pause > 0 and 1 or per_host > 0 and per_host or FAR
for i = 1, #ARGV[2], 8 do rooms[sub(ARGV[2], i, i + 3)] = up('<I4', ARGV[2], i + 4) end
local function opens_at(free, waits) return waits > now and max(free, min(waits, now + ${AWAITED} * 1e6)) or free end
local function is_open(host) return host[${OPENS}] <= now and host[${ROOM}] > 0 end
local function learn_hosts(keys)
  local hosts, learned, known = hosts, learned, #learned
  for i = 1, #keys do
    if not hosts[keys[i]] then hosts[keys[i]], learned[#learned + 1] = true, keys[i] end
  end
  local kept = is_paced and #learned > known and call('HMGET', P .. 'opens', unpack(learned, known + 1)) or {}
  for i = known + 1, #learned do
    local turns, free, turn, waits = kept[i - known], 0, 0, 0
    if turns then free, turn, waits = up(TURNS, #turns < ${TURNS_BYTES} and turns .. NONE or turns) end
    hosts[learned[i]] = {free, turn, waits, waits > now and opens_at(free, waits) or free, rooms[learned[i]] or most_of_host, false}
  end
end
local function start(host)
  host[${ROOM}] = host[${ROOM}] - 1
  if pause <= 0 then return end
  local late = period > 0 and host[${T_FREE}] > 0 and min(now - host[${T_FREE}], ${CATCH_UP} * 1e6, period * 1e6) or 0
  local free = now + (late > 0 and max(delay * 1e6, period * 1e6 - late) or pause)
  host[${T_FREE}], host[${T_AWAITED}], host[${OPENS}], host[${MOVED}] = free, awaits, awaits > 0 and opens_at(free, awaits) or free, true
end
-- Pages of the queue, in its order; those in `ready` may go out. Columns, as a table of each page costs more than all the rest.
local row, id, score_of, key_of, due, gain, leased, keeps, ready = nil, new_list(), new_list(), new_list(), new_list(), {}, {}, {}, new_list()
local PLACES, wait, queue, kept, over, from, last, since, base, wall = 1024, want > 0 and FAR or 0, new_list(), 0, 0, 0, FAR, '-inf', 0, 0
local reach = max(want + ${SPARE}, ${FEWEST}); local looks = max(${MOST_LOOKED_AT} + 1 - 2 * want, reach + 1) -- twice what is wanted at least
local function put(list, name, score) list[#list + 1], list[#list + 2] = format('%d', score), name end
local function put_off(page, host, score, is_kept)
  local open = max(host[${OPENS}], now + 10000); local at = open + max(host[${T_TURN}] - open, 0) % (${TURNS_END} * 1e6)
  if is_kept and kept < ${RIVALS} then kept = kept + 1; put(queue, page, place(open))
  elseif score <= now then put(queue, page, place(at) + score % 2); host[${T_TURN}], host[${MOVED}] = at + max(pause / ${RIVALS}, 10000), true end
  if host[${OPENS}] > now then wait, wall = min(wait, open - now), max(wall, host[${T_TURN}]) end -- of a full one its caller says when it has room
end
while #ready - over < want and (looks > 0 or #ready == 0 and last > now) and from < 256 do
  local told = call('ZRANGEBYSCORE', P .. 'q', since, '+inf', 'WITHSCORES', 'LIMIT', from - base, reach)
  for k = 1, #told, 2 do id[from + (k + 1) / 2] = told[k] end
  local rows = #told > 0 and call('HMGET', P .. 'pages', unpack(id, from + 1)) or {}
  if from == 0 then row = rows else for k = 1, #rows do row[from + k] = rows[k] end end
  for i = from + 1, is_bound and #row or 0 do key_of[i] = sub(row[i] or '', 1, 4) end
  learn_hosts(key_of)
  last, looks = tonumber(told[#told]) or last, looks - #rows
  for i = from + 1, #row do
    local value, score, host = row[i], told[2 * (i - from)], hosts[key_of[i]]
    local held = byte(score, -1) % 2 == 1 and tonumber(score) -- whole numbers, odd as their last digit is
    if held and (held > now or is_spared) then wait, looks = min(wait, held > now and held - now or 1e6), looks + 1
    elseif not value or #value < HEAD then call('ZREM', P .. 'q', id[i])
    else
      local flags, b, a, s, e, l = up('<Bdffff', value, ${FLAGS_AT})
      local at, late, moves, first = now, 1e6, false, now
      if not held then
        local free_wait = a + s * L
        at, moves, first = deadline(L, b, a, s, e, l), s > 0 and free_wait > e and free_wait < l, b + e * 1e6
        late = moves and (now - at) / 1e6 / s or 2 * (now - at) / (at - b + 1)
        moves = moves or late > ${STARVED} and e < l and free_wait <= e
        if late ~= late then at, late, moves, first = now, 0, false, now end -- a damaged row: its reader puts it aside
        -- A page whose update time has come, or that was pinged, goes before pages worth the price times e or less.
        if flags > 0 and late >= 0 and (has(flags, ${TIMED}) or e == l and has(flags, ${SIGNALLED})) then late = late + 1 end
      end
      local is_kept = has_kept and not held and late >= 0 and (has(flags, ${HUB}) -- beside first visits hubs, pinned and forced pages keep their times
        or e == l and (l == 0 or up('<f', value, ${LEAST_AT}) >= up('<f', value, ${MOST_AT})))
      if host and (host[${OPENS}] > now or host[${ROOM}] <= 0) then put_off(id[i], host, tonumber(score), is_kept)
      elseif first > now then
        wait = min(wait, first - now)
        if first > tonumber(score) then put(queue, id[i], place(first)) end
      else
        score_of[i], due[i] = score, at
        if moves then gain[i] = late > step and step or late < -step and -step or late elseif held then leased[i] = 1 end
        if is_kept then keeps[i] = true elseif is_first_pass and late >= 0 then over = over + 1 end
        -- By lateness in millionths, then by their places: one number each, as sorting by a function takes longer.
        late = is_kept and -2e12 or late > 1e6 and -1e12 or late > -1e6 and -1e6 * late or 1e12
        ready[#ready + 1] = (late - late % 1) * PLACES + i
      end
    end
  end
  from = #rows < reach and FAR or from + reach
  if #ready == 0 and looks <= 0 and last > now and wall > last then since, base = format('%d', wall), from end -- behind what was put off
end
if #ready - over < want and looks <= 0 and last <= now then wait = 0 end -- what is due behind those of shut hosts is next
table.sort(ready)
-- First visits: the next page of each open host, by rank, best last; hosts whose pages rank alike take turns. It is read with the one after
-- it, by which the host stands in f then (of few hosts four at a time); of no more hosts than can have one beside what is due.
local firsts, begun, standing, emptied, further, due_now = {}, {}, {}, {}, 1, 0
while has_first and due_now < #ready and due[ready[due_now + 1] % PLACES] <= now do due_now = due_now + 1 end
local has_room = has_first and (discovery + share * want >= 1 or #ready < want or due_now == 0)
local most = is_first_pass and want or has_room and min(want, max(0, want - due_now) + floor(discovery + share * want)) or 0
local function line_up(host)
  local list, at, i = host.list, 2 * host.n, 1
  local told = list[at + 1] and {} or call('ZRANGE', P .. 'f:' .. host.number, host.n, host.n + further, 'WITHSCORES')
  for k = 1, #told do list[at + k] = told[k] end
  host.id, host.rank = list[at + 1], tonumber(list[at + 2])
  while firsts[i] and firsts[i].rank > (host.rank or 0) do i = i + 1 end
  if host.id and is_open(host) then table.insert(firsts, i, host) end
end
for from = 0, most > 0 and want + #ARGV[2] / 8 or -1, want + ${SPARE} do
  local numbers, keys = call('ZRANGEBYSCORE', P .. 'f', '-inf', now, 'LIMIT', from, want + ${SPARE}), {}
  for i, number in ipairs(numbers) do keys[i] = pk('<I4', number) end
  learn_hosts(keys)
  further = #numbers < want and 3 or 1
  for i, key in ipairs(keys) do
    local host = hosts[key]
    if host[${OPENS}] > now then put(standing, numbers[i], host[${OPENS}])
    elseif #begun < most + ${SPARE} and is_open(host) then
      host.number, host.list, host.n, begun[#begun + 1] = numbers[i], {}, 0, host
      line_up(host)
    end
  end
  if #begun >= most or #numbers < want + ${SPARE} then break end
end
local ids, values, fresh, left, r, got, expired = new_list(), new_list(), {}, {}, 1, 0, 0
while got < want do
  local i, host = ready[r] and ready[r] % PLACES, firsts[#firsts]
  local is_due, own = i and due[i] <= now, i and hosts[key_of[i]]
  if own and (own[${OPENS}] > now or own[${ROOM}] <= 0) then left[#left + 1], r = i, r + 1
  elseif host and not is_open(host) then firsts[#firsts] = nil
  elseif host and (not is_due or is_first_pass and not keeps[i] or share > 0
      and discovery + share >= (keeps[i] and most_saved + 1 or discovery >= 1 and is_turn_of_due and FAR or 1)) then
    if is_due then discovery = max(0, discovery + share - 1) end
    got, firsts[#firsts], host.n = got + 1, nil, host.n + 1
    ids[got], fresh[#fresh + 1] = host.id, host.id; start(host); line_up(host)
  elseif i then
    discovery, r, got = discovery + (has_first and discovery + share <= most_saved + (keeps[i] and host and 1 or 0) and share or 0), r + 1, got + 1
    expired, ids[got], values[got] = expired + (leased[i] or 0), id[i], row[i]
    -- A page that waited for its host says nothing about the price of the others.
    if gain[i] and not (is_paced and gain[i] > 0 and due[i] < own[${T_FREE}]) then L = L + gain[i] end
    if own then start(own) end
  else break end
end
store_counts({dispatched = got, leases_expired = expired}) -- a counter that is damaged ends the call before it writes leases
for j = r, #ready do left[#left + 1] = ready[j] % PLACES end
for _, i in ipairs(left) do
  local score, host = tonumber(score_of[i]), hosts[key_of[i]]
  if host and not is_open(host) then put_off(id[i], host, score, keeps[i])
  else
    -- Pages that first visits went before are looked at again after half of their lateness, 5 s at most, so that they hide no pinned ones.
    local is_passed = is_first_pass and fresh[1] and not keeps[i] and due[i] <= now
    local to = place(is_passed and now + min((now - due[i]) / 2, 5e6) or due[i])
    if score % 2 == 0 and score ~= FRONT and math.abs(to - score) > 0.01 * math.abs(to - now) then put(queue, id[i], to) end
    wait = min(wait, max(0, due[i] - now))
  end
end
-- First visits leave their queue, and all that go out stand as leased.
for _, host in ipairs(begun) do
  local gone = {}
  for i = 1, host.n do gone[i] = host.list[2 * i - 1] end
  many('ZREM', 'f:' .. host.number, gone)
  if not host.id then emptied[#emptied + 1] = host.number
  elseif host.n > 0 then put(standing, host.number, pause > 0 and host[${T_FREE}] or host.rank) end
end
many('ZADD', 'f', standing); many('ZREM', 'f', emptied)
local rows, token, numbers, seen, k = read('pages', fresh), format('%d', floor((now + lease * 1e6) / 2) * 2 + 1), new_list(), {}, 0
for i = 1, got do
  if not values[i] then values[i], k = rows[k + 1] or '', k + 1 end
  local value, at = values[i], #queue
  queue[at + 1], queue[at + 2] = token, ids[i]
  local number = #value < 4 and 0 or (up('<I4', value))
  if not seen[number] then numbers[#numbers + 1], seen[number] = format('%d', number), true end
end
many('ZADD', 'q', queue)
local turns, opened, packed = new_list(), {}, {}
for i = 1, #learned do
  local key, host = learned[i], hosts[learned[i]]
  local free, turn = host[${T_FREE}], host[${T_TURN}]
  if host[${MOVED}] then -- a turn before the host is free says nothing: so most are packed alike
    local like = turn <= free and free or key
    packed[like] = packed[like] or pk(TURNS, free, turn, host[${T_AWAITED}])
    turns[#turns + 1], turns[#turns + 2] = key, packed[like]
  elseif pause <= 0 and free > 0 and host[${OPENS}] <= now then opened[#opened + 1] = key end
end
many('HSET', 'opens', turns); many('HDEL', 'opens', opened)
local next_open = has_first and is_paced and call('ZRANGE', P .. 'f', '0', '0', 'WITHSCORES')[2]
if next_open and tonumber(next_open) > now then wait = min(wait, next_open - now) elseif firsts[1] or #begun > most then wait = 0 end
if budget > 0 and tokens - got < 1 then wait = max(wait, (1 - tokens + got) / budget * 1e6) end
d[${D_AT}], d[${D_CLOCK}], d[${D_TOKENS}], d[${D_DISCOVERY}], d[${D_LOG_PRICE}] = now, told, budget > 0 and tokens - got or 1, discovery, L
if run ~= 0 then d[${D_RUN}], d[${D_DISPATCHES}] = (run < 0 or found == 0) and math.abs(run) or found, dispatches + 1 end
write_state(d)
local is_known = call('EXISTS', P .. 'memory', P .. 'hosts:words') > 0
return {pk('<dddddddddd', now, wait, ranked_at, L, d[${D_PLAN}], d[${D_FORGOTTEN}], token, told, found, dispatches), ids, values,
  is_known and read('memory', ids), is_known and read('hosts:words', numbers), read('hosts:names', numbers)}
