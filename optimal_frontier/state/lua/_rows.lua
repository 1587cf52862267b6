-- Shared by every script and put in front of it by scripts.py, which fills in what stands in ${...}.
-- KEYS[1]  prefix of the partition, "NAMESPACE:{k}:"; every key carries its hash tag. Times are whole microseconds. Keys: see keys.py.
local P, call, up, pk, floor, min, max = KEYS[1], redis.call, struct.unpack, struct.pack, math.floor, math.min, math.max
local sub, byte, format = string.sub, string.byte, string.format
local HEAD, PAGE, FAR, FRONT = ${HEAD_BYTES}, ${PAGE_BYTES}, 9e15, 4 -- FRONT: score of a page that was pinged; those given back have 2
-- Values of d and of opens (layouts.py); zeros stand for what one of an earlier build lacks.
local STATE, TURNS, NONE = '${STATE_FORMAT}', '${TURNS_FORMAT}', string.rep('\0', ${LACKING_BYTES})
-- Never before `at`. A caller who knows what it should be by its own clock (expected; 0: it does not) believes the server's within so much.
-- For anybody else a clock that was ahead at the last call is so still, unless that is long ago.
local function clock(d, expected, within)
  local t = call('TIME')
  local told, at = t[1] * 1e6 + t[2], d[${D_AT}]
  local since = told - d[${D_CLOCK}]
  local is_near = since >= 0 and since < ${REMEMBERED} * 1e6 and told > at
  if (expected or 0) == 0 then expected, within = is_near and at + since or told, ${BELIEVED} * 1e6 end
  return max(math.abs(told - expected) > within and expected or told, at), told
end
local function has(flags, bit) return flags % (2 * bit) >= bit end
local function read_state() return {up(STATE, (call('GET', P .. 'd') or pk(STATE, ${FRESH_STATE})) .. NONE)} end
local function write_state(d) call('SET', P .. 'd', pk(STATE, unpack(d)), 'KEEPTTL') end -- so that it is lost with the rest, and noticed
-- When a page is due (scheduling/numbers.py), and where that is on the queue: whole and even, as odd scores are leases.
local function deadline(L, b, a, s, e, l)
  local wait = a + s * L
  return b + (wait < e and e < l and e or wait < l and wait >= e and wait or l) * 1e6
end
local function place(due) return due >= FAR and FAR or due - due % 2 end
-- A list with room for 16: one that grows from nothing costs more than what is put into it.
local function new_list() return {nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil} end
local function many(command, key, list) if #list > 0 then call(command, P .. key, unpack(list)) end end
local function read(key, fields) return #fields > 0 and call('HMGET', P .. key, unpack(fields)) or {} end
-- rows: flat list of row, page of pages that wait for their first visit: their rank stands where others have a and s. In f a host stands by
-- the rank of its first page (below 0), or by the time when it opens: if it is shut it stays so.
local function queue_first(rows)
  local hosts, lists, standing = {}, {}, {'LT'}
  for i = 1, #rows, 2 do
    local host, rank = format('%d', (up('<I4', rows[i]))), up('<d', rows[i], ${RANK_AT})
    if not lists[host] then hosts[#hosts + 1], lists[host] = host, {best = rank} end
    local list = lists[host]
    list[#list + 1], list[#list + 2], list.best = format('%d', rank), rows[i + 1], min(rank, list.best)
  end
  for i, score in ipairs(hosts[1] and call('ZMSCORE', P .. 'f', unpack(hosts)) or {}) do
    call('ZADD', P .. 'f:' .. hosts[i], unpack(lists[hosts[i]]))
    if tonumber(score or 0) <= 0 then standing[#standing + 1], standing[#standing + 2] = format('%d', lists[hosts[i]].best), hosts[i] end
  end
  if standing[2] then call('ZADD', P .. 'f', unpack(standing)) end
end
local function store_counts(sums) for name, by in pairs(sums) do if by ~= 0 then call('HINCRBY', P .. 'stats', name, format('%d', by)) end end end
