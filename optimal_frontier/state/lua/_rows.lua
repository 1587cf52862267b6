-- Shared by every script and put in front of it by scripts.py, which fills in what stands in ${...} from rows.py and keys.py.
-- KEYS[1]  prefix of the partition, "NAMESPACE:{k}:"; every key below carries its hash tag. Times are whole microseconds.
local P, call, up, pk, sub, floor = KEYS[1], redis.call, struct.unpack, struct.pack, string.sub, math.floor
local HEAD, PAGE, RANK, FAR = ${HEAD_BYTES}, ${PAGE_BYTES}, 16, 9e15
local ACTIVE, ONCE, TRANSIENT, RETIRED, DONE = 1, 2, 3, 4, 5
-- What scripts read of a head: host, state, flags, b, a, s, e, l. In front of a first visit b is 0, and a to l hold its rank.
local QUEUE = '${QUEUE_FORMAT}'
-- d: at, tokens, discovery, log price, step, number of the plan, pages forgotten
local STATE, STATE_FIELDS = '<ddddddd', 7

local function clock(at)
  local t = call('TIME')
  local now = t[1] * 1e6 + t[2]
  return now < at and at or now
end

local function read_state()
  local kept = call('GET', P .. 'd')
  if not kept then
    local now = clock(0)
    return {now, 1, 0, 0, 0.001, 0, 0}
  end
  return {up(STATE, kept)}
end

local function write_state(d) call('SET', P .. 'd', pk(STATE, unpack(d, 1, STATE_FIELDS))) end

-- When a page is due (scheduling/numbers.py), and where that is on the queue: whole and even, as odd scores are leases.
local function deadline(L, b, a, s, e, l)
  local d = a + s * L
  if d > l then d = l end
  if d < e then d = e end
  return b + d * 1e6
end
local function place(due) return due >= FAR and FAR or floor(due / 2) * 2 end

local function many(command, key, list)
  if #list > 0 then call(command, key, unpack(list)) end
end

-- Puts first visits back at the front of their hosts: f has the first page of each host that is open, w when the others open.
local function head_of(host)
  local first = call('ZRANGE', P .. 'f:' .. host, 0, 0, 'WITHSCORES')
  return first[1], first[2]
end
local function sync_head(host, before)
  local member, score = head_of(host)
  if before == member then return end
  local suffix = pk('>I4', host)
  if before then call('ZREM', P .. 'f', before .. suffix) end
  if member and not call('ZSCORE', P .. 'w', suffix) then call('ZADD', P .. 'f', score, member .. suffix) end
end
-- rows: flat list of head, page of pages that wait for their first visit
local function queue_first(rows)
  local hosts = {}
  for i = 1, #rows, 2 do
    local host = up('<I4', rows[i])
    local list = hosts[host]
    if not list then list = {}; hosts[host] = list end
    list[#list + 1] = -up('<f', rows[i], ${PRIORITY_AT})
    list[#list + 1] = sub(rows[i], ${RANK_AT}, ${RANK_AT} + RANK - 1) .. rows[i + 1]
  end
  for host, list in pairs(hosts) do
    local before = head_of(host)
    many('ZADD', P .. 'f:' .. host, list)
    sync_head(host, before)
  end
end
