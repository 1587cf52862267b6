-- Shared by scripts that add, move and forget pages.
local function host_number(name)
  local host = call('HGET', P .. 'hosts', name)
  if host then return tonumber(host) end
  host = call('HLEN', P .. 'hosts') + 1
  call('HSET', P .. 'hosts', name, host); call('HSET', P .. 'hosts:names', host, name)
  return host
end
-- Counts a page among those that are known (and held), or no more: in `sums`, to be added to counters, and of its host and its pattern in `known`.
local known = {}
local function note_page(row, by, sums)
  local host, state, flags = up(QUEUE, row)
  if state == TRANSIENT then return end
  sums.held = (sums.held or 0) + floor(flags / ${HELD}) % 2 * by
  for _, field in ipairs({'h' .. host, 'p' .. up('<I4', row, ${PATTERN_AT})}) do known[field] = (known[field] or 0) + by end
  if state ~= ACTIVE and state ~= RETIRED then return end
  sums.pages = (sums.pages or 0) + by
  if up('<I4', row, ${VISITS_AT}) > 0 then sums.fetched = (sums.fetched or 0) + by end
  if state == RETIRED then sums.retired = (sums.retired or 0) + by end
end
local function store_pages(sums) store_counts(sums); store_counts(known, 'kept') end
local function remove(id) call('ZREM', P .. 'q', id); call('HDEL', P .. 'pages', id); call('HDEL', P .. 'memory', id) end
local function leave_first(host, id, sums)
  call('ZREM', P .. 'f:' .. host, id)
  local head = call('ZRANGE', P .. 'f:' .. host, 0, 0, 'WITHSCORES')
  if not head[2] then call('ZREM', P .. 'f', host)
  elseif tonumber(call('ZSCORE', P .. 'f', host) or 0) <= 0 then call('ZADD', P .. 'f', head[2], host) end
  sums.pending = (sums.pending or 0) - 1
end
