-- Forgets pages: head, tail, memory, place in the queues, lease, and their other names.
-- ARGV  per page 2 values: page (12 bytes), its aliases (12 bytes each)
-- Returns  per page 1, or 0 if it is not known. O(log n) a page; idempotent.
local result, sums, forgotten = {}, {pages = 0, pending = 0, fetched = 0, retired = 0}, 0
for i = 1, #ARGV, 2 do
  local id, old = ARGV[i], call('HGET', P .. 'pages', ARGV[i])
  for at = 1, #ARGV[i + 1], PAGE do call('HDEL', P .. 'aliases', sub(ARGV[i + 1], at, at + PAGE - 1)) end
  if not old then
    call('HDEL', P .. 'aliases', id)
    result[#result + 1] = 0
  else
    local host, state, _, b = up(QUEUE, old)
    local score = call('ZSCORE', P .. 'q', id)
    if b == 0 and not score and state < RETIRED then
      call('ZREM', P .. 'f:' .. host, id)
      if tonumber(call('ZSCORE', P .. 'f', host) or 0) <= 0 then sync_first(host) end
    end
    call('ZREM', P .. 'q', id)
    call('HDEL', P .. 'pages', id)
    call('HDEL', P .. 'memory', id)
    if b == 0 and state < RETIRED then sums.pending = sums.pending - 1 end
    if state == ACTIVE or state == RETIRED then sums.pages = sums.pages - 1 end
    if state == RETIRED then sums.retired = sums.retired - 1 end
    if up('<I4', old, ${VISITS_AT}) > 0 then sums.fetched = sums.fetched - 1 end
    if score and tonumber(score) % 2 == 1 then sums.ended = (sums.ended or 0) + 1 end
    if state ~= TRANSIENT then
      call('HINCRBY', P .. 'kept', 'h' .. host, -1)
      call('HINCRBY', P .. 'kept', 'p' .. up('<I4', old, ${PATTERN_AT}), -1)
    end
    forgotten = forgotten + 1
    result[#result + 1] = 1
  end
end
store_counts(sums)
if forgotten > 0 then
  local d = read_state()
  d[7] = d[7] + forgotten
  write_state(d)
end
return result
