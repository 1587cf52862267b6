-- Ends leases, and stores what the judge made of their visits.
-- ARGV[1]  msgpack: a map. By number of the lease: pages, tokens (digits), ops (0 keep, 1 release, 2 drop, 3 rest: in no queue), values (head
--          and tail: of 0 and 3; of 1 if the page waits for its first visit again); and of some leases memories (empty: nothing is
--          remembered), changes (fields of an entry of `changes`), visits (for `visited`, see state/visit_log.py).
--          counted: maps of what counters get (by) for each of some leases (of)
-- Returns  per lease 1 if it was counted, 0 if it is not this token's any more. Variadic commands, O(log n) a page; idempotent by token.
local said, L = cmsgpack.unpack(ARGV[1]), read_state()[${D_LOG_PRICE}]
local scores, amended = call('ZMSCORE', P .. 'q', unpack(said.pages)), call('EXISTS', P .. 'amended') == 1
local result, sums, values, queue, leave, drop, first = {}, {ended = 0, observations_refused = 0}, {}, {}, {}, {}, {}
local memories, forgotten, visits = {}, {}, {}
for j, id in ipairs(said.pages) do
  local op, value, memory, change = said.ops[j], said.values[j], said.memories[j], said.changes[j]
  result[j] = scores[j] == said.tokens[j] and 1 or 0
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
    if memory == '' then forgotten[#forgotten + 1] = id
    elseif memory then memories[#memories + 1], memories[#memories + 2] = id, memory end
    if change then call('XADD', P .. 'changes', 'MAXLEN', '~', ${KEPT_CHANGES}, '*', unpack(change)) end
    visits[#visits + 1] = said.visits[j]
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
if visits[1] then call('XADD', P .. 'visited', 'MAXLEN', '~', ${KEPT_ENTRIES}, '*', 'v', table.concat(visits)) end
return result
