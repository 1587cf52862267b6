-- Shared by scripts that add, move and forget pages: states, and what they read of a head: host, state, flags, b, a, s, e, l.
local ACTIVE, TRANSIENT, RETIRED, DONE, QUEUE = 1, 3, 4, 5, '${QUEUE_FORMAT}'
-- Numbers of hosts, as text; those that are new get one.
local function host_numbers(names)
  local numbers, named, last, new, back, k = read('hosts', names), {}, nil, {}, {}, 0
  for j, name in ipairs(names) do
    if not numbers[j] and not named[name] then
      last = (last or max(call('HLEN', P .. 'hosts'), call('HLEN', P .. 'hosts:names'))) + 1 -- one of them may be lost
      local number = format('%d', last)
      named[name], new[k + 1], new[k + 2], back[k + 1], back[k + 2], k = number, name, number, number, name, k + 2
    end
    numbers[j] = numbers[j] or named[name]
  end
  many('HSET', 'hosts', new); many('HSET', 'hosts:names', back)
  return numbers
end
-- Counts a page among those that are known (and held), or no more: in `sums` for counters, and of its host and its pattern in `known`.
local known = {}
local function note_page(row, by, sums)
  local host, state, flags = up(QUEUE, row)
  if state == TRANSIENT then return end
  sums.held = (sums.held or 0) + floor(flags / ${HELD}) % 2 * by
  local h, p = format('h%d', host), format('p%d', (up('<I4', row, ${PATTERN_AT})))
  known[h], known[p] = (known[h] or 0) + by, (known[p] or 0) + by
  if state ~= ACTIVE and state ~= RETIRED then return end
  sums.pages = (sums.pages or 0) + by
  if up('<I4', row, ${VISITS_AT}) > 0 then sums.fetched = (sums.fetched or 0) + by end
  if state == RETIRED then sums.retired = (sums.retired or 0) + by end
end
local function store_pages(sums)
  store_counts(sums)
  local fields, counts = {}, {}
  for field, by in pairs(known) do if by ~= 0 then fields[#fields + 1] = field end end
  for i, count in ipairs(read('kept', fields)) do
    counts[2 * i - 1], counts[2 * i] = fields[i], format('%d', (tonumber(count or 0) or 0) + known[fields[i]])
  end
  many('HSET', 'kept', counts)
end
local function remove(ids) many('ZREM', 'q', ids); many('HDEL', 'pages', ids); many('HDEL', 'memory', ids) end
-- lists: pages that wait for their first visit no more, by host.
local function leave_first(lists, sums)
  for host, ids in pairs(lists) do
    local list = format('%sf:%d', P, host)
    call('ZREM', list, unpack(ids))
    local head = call('ZRANGE', list, 0, 0, 'WITHSCORES')
    if not head[2] then call('ZREM', P .. 'f', host)
    elseif tonumber(call('ZSCORE', P .. 'f', host) or 0) <= 0 then call('ZADD', P .. 'f', head[2], host) end
    sums.pending = (sums.pending or 0) - #ids
  end
end
