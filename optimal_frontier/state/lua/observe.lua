-- Ends leases, and stores what the judge made of their visits.
-- ARGV[1]  msgpack: a map. pages, ops (0 keep, 1 release, 2 drop, 3 rest: in no queue) and leases (number of its token) of each visit; tokens
--          (in digits); of some visits, by number, memories (which of the last arguments; 0: nothing is remembered) and changes (fields of
--          an entry of `changes`); counted: maps of what counters get (by) for each of some visits (of)
-- ARGV[2]  visits that gave a bit, for the stream `visited` (state/visit_log.py), each begins with "<I2" its number (or empty)
-- then the value of each (head and tail: of 0 and 3; of 1 if the page waits for its first visit again), then memories
-- Returns  per visit 1 if it was counted, 0 if the lease is not this token's any more. O(log n) a page; idempotent by token.
local said, L, held = cmsgpack.unpack(ARGV[1]), read_state()[${D_LOG_PRICE}], {}
for number, token in ipairs(said.tokens) do
  -- All pages of one handout have one token, so this is less than to ask for the score of each.
  for _, id in ipairs(call('ZRANGEBYSCORE', P .. 'q', token, token)) do held[id] = number end
end
local amended = call('EXISTS', P .. 'amended') == 1
local result, sums, values, queue, leave, drop, first = {}, {ended = 0, observations_refused = 0}, {}, {}, {}, {}, {}
local memories, forgotten = {}, {}
for j, id in ipairs(said.pages) do
  local op, value, memory, change = said.ops[j], ARGV[2 + j], said.memories[j], said.changes[j]
  result[j] = held[id] == said.leases[j] and 1 or 0
  if result[j] == 0 then sums.observations_refused = sums.observations_refused + 1 else
    sums.ended = sums.ended + 1
    if op == 0 or op == 3 then
      -- The page was yielded with another tail meanwhile.
      if amended and call('SREM', P .. 'amended', id) == 1 then value = sub(value, 1, HEAD) .. sub(call('HGET', P .. 'pages', id) or value, HEAD + 1) end
      values[#values + 1], values[#values + 2] = id, value
    end
    if op == 0 then queue[#queue + 1], queue[#queue + 2] = format('%d', place(deadline(L, up('<dffff', value, ${NUMBERS_AT})))), id
    elseif op == 1 and value == '' then queue[#queue + 1], queue[#queue + 2] = 2, id
    else leave[#leave + 1] = id end
    if op == 1 and value ~= '' then first[#first + 1], first[#first + 2] = value, id end
    if op == 2 then drop[#drop + 1] = id end
    if memory == 0 then forgotten[#forgotten + 1] = id
    elseif memory then memories[#memories + 1], memories[#memories + 2] = id, ARGV[memory] end
    if change then call('XADD', P .. 'changes', 'MAXLEN', '~', ${KEPT_CHANGES}, '*', unpack(change)) end
  end
end
many('HSET', 'pages', values); many('HDEL', 'pages', drop)
many('ZADD', 'q', queue); many('ZREM', 'q', leave)
many('HSET', 'memory', memories); many('HDEL', 'memory', forgotten)
queue_first(first)
for _, counted in ipairs(said.counted) do
  local times = 0
  for _, j in ipairs(counted.of) do times = times + result[j] end
  for name, by in pairs(counted.by) do sums[name] = (sums[name] or 0) + by * times end
end
store_counts(sums)
local visits, taken = ARGV[2], {}
for i = 1, sums.observations_refused > 0 and #visits or 0, ${VISIT_BYTES} do
  if result[up('<I2', visits, i)] == 1 then taken[#taken + 1] = sub(visits, i, i + ${VISIT_BYTES} - 1) end
end
if sums.observations_refused > 0 then visits = table.concat(taken) end
if visits ~= '' then call('XADD', P .. 'visited', 'MAXLEN', '~', ${KEPT_ENTRIES}, '*', 'v', visits) end
return result
