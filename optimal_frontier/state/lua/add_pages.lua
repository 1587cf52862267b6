-- Adds pages that are not known, and replaces the tail of known ones that are yielded with another: its importance only by a stated one.
-- ARGV  per page 5 values: page (12 bytes), host, "<dI4I4" of its rank without its arrival, most pages of its host and of its pattern for it
--       to be taken (0: no limit), head, tail
-- Returns  per page 1 if it is new, 0 if it was known, 2 if its tail was replaced, -1 if its host has as many pages as it may have, -2 if
--          its pattern has; of a known page that is in no queue (retired, done) its stored value. O(log n) a page; idempotent.
local n, ids, names, of_host, of_pattern, fields, kept, result = #ARGV / 5, {}, {}, {}, {}, {}, {}, {}
for j = 1, n do ids[j], names[j] = ARGV[5 * j - 4], ARGV[5 * j - 3] end
local stored, numbers = read('pages', ids), host_numbers(names)
local aliases = call('EXISTS', P .. 'aliases') == 1 and read('aliases', ids) or {}
for j = 1, n do
  if not stored[j] then
    of_host[j], of_pattern[j] = 'h' .. numbers[j], format('p%d', (up('<I4', ARGV[5 * j - 1], ${PATTERN_AT})))
    fields[#fields + 1], fields[#fields + 2] = of_host[j], of_pattern[j]
  end
end
for i, count in ipairs(read('kept', fields)) do kept[fields[i]] = tonumber(count or 0) end
local function is_full(field, most) return most > 0 and kept[field] + (known[field] or 0) >= most end
local new, values, rows, replaced, sums, arrivals = {}, {}, {}, {}, {pending = 0}, nil
for j = 1, n do
  local id, old, head, tail = ids[j], new[ids[j]] or stored[j], ARGV[5 * j - 1], ARGV[5 * j]
  local rank, most_of_host, most_of_pattern = up('<dI4I4', ARGV[5 * j - 2])
  if old then
    local before = sub(old, HEAD + 1)
    if sub(tail, 1, 4) == '\0\0\0\0' then tail = sub(before, 1, 4) .. sub(tail, 5) end
    local state = #old < HEAD and DONE or byte(old, ${STATE_AT})
    result[j] = state >= RETIRED and #old >= HEAD and old or 0
    if tail ~= before and state ~= DONE then
      new[id] = sub(old, 1, HEAD) .. tail
      values[#values + 1], values[#values + 2] = id, new[id]
      if state < RETIRED then result[j], replaced[#replaced + 1] = 2, id end
    end
  elseif aliases[j] then result[j] = 0
  elseif is_full(of_host[j], most_of_host) then result[j] = -1
  elseif is_full(of_pattern[j], most_of_pattern) then result[j] = -2
  else
    arrivals = arrivals or call('HINCRBY', P .. 'stats', 'arrivals', n) - n
    local row = pk('<I4', numbers[j]) .. sub(head, 5, 6) .. pk('<dd', 0, rank + arrivals + j) .. sub(head, ${RANK_AT} + 8)
    new[id], result[j], sums.pending = row .. tail, 1, sums.pending + 1
    values[#values + 1], values[#values + 2], rows[#rows + 1], rows[#rows + 2] = id, new[id], row, id
    note_page(row, 1, sums)
  end
end
many('HSET', 'pages', values)
queue_first(rows)
-- An observation that is under way brings the tail that it was handed out with.
local scores = replaced[1] and call('ZMSCORE', P .. 'q', unpack(replaced)) or {}
for i = 1, #replaced do if scores[i] and scores[i] % 2 == 1 then call('SADD', P .. 'amended', replaced[i]) end end
store_pages(sums)
return result
