-- Adds pages that are not known, and replaces the tail of known ones that are yielded with another: its importance only by a stated one.
-- ARGV  per page 5 values: page (12 bytes), host, "<dI4I4" of its rank without its arrival, most pages of its host and of its pattern for it
--       to be taken (0: no limit), head, tail
-- Returns  per page 1 if it is new, 0 if it was known, 2 if its tail was replaced, -1 if its host has as many pages as it may have, -2 if
--          its pattern has; of a known page that is in no queue (retired, done) its stored value. O(log n) a page; idempotent.
local n = #ARGV / 5
local ids, names, result = {}, {}, {}
for j = 1, n do ids[j], names[j] = ARGV[5 * j - 4], ARGV[5 * j - 3] end
local known, numbers = read(P .. 'pages', ids), read(P .. 'hosts', names)
local aliases = call('EXISTS', P .. 'aliases') == 1 and read(P .. 'aliases', ids) or {}
local named, new, values, kept, rows, replaced = {}, {}, {}, {}, {}, {}
local pages, pending, arrivals = 0, 0, false
local function count_of(field)
  kept[field] = kept[field] or tonumber(call('HGET', P .. 'kept', field) or '0')
  return kept[field]
end
for j = 1, n do
  local id, old, head, tail = ids[j], new[ids[j]] or known[j], ARGV[5 * j - 1], ARGV[5 * j]
  if old then
    local stored = sub(old, HEAD + 1)
    if sub(tail, 1, 4) == '\0\0\0\0' then tail = sub(stored, 1, 4) .. sub(tail, 5) end
    local state = #old < HEAD and DONE or string.byte(old, ${STATE_AT})
    result[j] = state >= RETIRED and #old >= HEAD and old or 0
    if tail ~= stored and state ~= DONE then
      new[id] = sub(old, 1, HEAD) .. tail
      values[#values + 1], values[#values + 2] = id, new[id]
      if state < RETIRED then result[j], replaced[#replaced + 1] = 2, id end
    end
  elseif aliases[j] then
    result[j] = 0
  else
    local host = tonumber(numbers[j] or named[names[j]])
    local rank, most_of_host, most_of_pattern = up('<dI4I4', ARGV[5 * j - 2])
    local state, pattern = string.byte(head, ${STATE_AT}), up('<I4', head, ${PATTERN_AT})
    local of_host = host and most_of_host > 0 and count_of('h' .. host)
    local of_pattern = most_of_pattern > 0 and count_of('p' .. pattern)
    if of_host and of_host >= most_of_host then
      result[j] = -1
    elseif of_pattern and of_pattern >= most_of_pattern then
      result[j] = -2
    else
      host = host or host_number(names[j])
      named[names[j]] = host
      if not arrivals then arrivals = call('HINCRBY', P .. 'stats', 'arrivals', n) - n end
      local row = pk('<I4', host) .. sub(head, 5, 6) .. pk('<dd', 0, rank + arrivals + j) .. sub(head, RANK_AT + 8)
      values[#values + 1], values[#values + 2] = id, row .. tail
      new[id] = row .. tail
      rows[#rows + 1], rows[#rows + 2] = row, id
      if state ~= TRANSIENT then
        kept['h' .. host], kept['p' .. pattern] = count_of('h' .. host) + 1, count_of('p' .. pattern) + 1
      end
      if state == ACTIVE then pages = pages + 1 end
      pending = pending + 1
      result[j] = 1
    end
  end
end
many('HSET', P .. 'pages', values)
queue_first(rows)
-- An observation that is under way brings the tail that it was handed out with.
local scores = replaced[1] and call('ZMSCORE', P .. 'q', unpack(replaced)) or {}
for i = 1, #replaced do if scores[i] and scores[i] % 2 == 1 then call('SADD', P .. 'amended', replaced[i]) end end
local counted = {}
for field, count in pairs(kept) do counted[#counted + 1], counted[#counted + 2] = field, count end
many('HSET', P .. 'kept', counted)
store_counts({pages = pages, pending = pending})
return result
