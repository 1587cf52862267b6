-- Ends leases, and stores what the judge made of their visits.
-- ARGV[1]  pages that were retired: per page "<I4" host and the page; kept for the guard against mass deletion (or empty)
-- ARGV[2]  seconds of lateness, separated by blanks (or empty)
-- ARGV[3]  words of hosts: per host "<I4I2" host, size, and the words (or empty)
-- ARGV[4]  "<I2I2I2I2": leases n, then how many pairs follow of counters, memories, changes
-- ARGV[5]  per lease: page, op (0 keep, 1 release, 2 drop, 3 rest: in no queue), digits of its token, and the token in that many
-- ARGV[6]  visits that gave a bit, for the stream `visited` (state/visit_log.py), each begins with "<I2" number of its lease (or empty)
-- then per lease its value (head and tail; empty but for 0 and 3)
-- then "name=by name=by", numbers of the leases ("<I2", from 1) that they are of; number of a lease, memory (empty: nothing is remembered);
--      number of a lease, change (previous and new fingerprint in hexadecimal, URL)
-- Returns  per lease 1 if it was counted, 0 if it is not this token's any more. Variadic commands, O(log n) a page; idempotent by token.
local n, n_counters, n_memories = up('<I2I2I2I2', ARGV[4])
local L, result, ids, tokens, ops, at = read_state()[${D_LOG_PRICE}], {}, {}, {}, {}, 1
for j = 1, n do ids[j], ops[j], tokens[j], at = up('<c${PAGE_BYTES}BBc0', ARGV[5], at) end
local scores, amended = call('ZMSCORE', P .. 'q', unpack(ids)), call('EXISTS', P .. 'amended') == 1
local values, queue, leave, forget, back, v, q, refused = {}, {}, {}, {}, {}, 0, 0, 0
for j = 1, n do
  local id, op, value = ids[j], ops[j], ARGV[6 + j]
  result[j] = scores[j] == tokens[j] and 1 or 0
  if result[j] == 0 then refused = refused + 1 else
    if op == 0 or op == 3 then
      -- The page was yielded with another tail meanwhile.
      if amended and call('SREM', P .. 'amended', id) == 1 then value = sub(value, 1, HEAD) .. sub(call('HGET', P .. 'pages', id) or value, HEAD + 1) end
      values[v + 1], values[v + 2], v = id, value, v + 2
    end
    if op == 0 then
      queue[q + 1], queue[q + 2], q = format('%d', place(deadline(L, up('<dffff', value, ${NUMBERS_AT})))), id, q + 2
    elseif op == 1 then
      local row = call('HGET', P .. 'pages', id) or ''
      local b = #row >= HEAD and select(4, up(QUEUE, row))
      if not b then leave[#leave + 1] = id -- somebody has removed or damaged it meanwhile
      elseif b == 0 then leave[#leave + 1], back[#back + 1], back[#back + 2] = id, row, id
      else queue[q + 1], queue[q + 2], q = 2, id, q + 2 end
    else
      leave[#leave + 1] = id
      if op == 2 then forget[#forget + 1] = id end
    end
  end
end
many('HSET', 'pages', values); many('HDEL', 'pages', forget)
many('ZADD', 'q', queue); many('ZREM', 'q', leave)
queue_first(back)
local sums, remembered, forgotten = {ended = n - refused, observations_refused = refused}, {}, {}
at = 7 + n
for i = at, at + 2 * n_counters - 2, 2 do
  local of, times = ARGV[i + 1], refused > 0 and 0 or #ARGV[i + 1] / 2
  for k = 1, refused > 0 and #of or 0, 2 do times = times + result[up('<I2', of, k)] end
  add_counts(ARGV[i], times, sums)
end
store_counts(sums)
at = at + 2 * n_counters
for i = at, #ARGV - 1, 2 do
  local j, value = up('<I2', ARGV[i]), ARGV[i + 1]
  if result[j] == 1 and i >= at + 2 * n_memories then
    local _, _, _, b = up(QUEUE, ARGV[6 + j])
    call('XADD', P .. 'changes', 'MAXLEN', '~', 10000, '*', 'page', ids[j], 'time', string.format('%.6f', b / 1e6), 'url', sub(value, 65),
      'previous', sub(value, 1, 32), 'fingerprint', sub(value, 33, 64))
  elseif result[j] == 1 then
    if value == '' then forgotten[#forgotten + 1] = ids[j] else remembered[#remembered + 1], remembered[#remembered + 2] = ids[j], value end
  end
end
many('HSET', 'memory', remembered); many('HDEL', 'memory', forgotten)
for i = 1, #ARGV[1], PAGE + 4 do
  local key = P .. 'retired:' .. up('<I4', ARGV[1], i)
  if call('LPUSH', key, sub(ARGV[1], i + 4, i + 3 + PAGE)) > 32 then call('RPOP', key) end
end
if ARGV[2] ~= '' and call('LPUSH', P .. 'lateness', ARGV[2]) > 1000 then call('RPOP', P .. 'lateness') end
local visited = {ARGV[6]}
for i = 1, refused > 0 and #ARGV[6] or 0, ${VISIT_BYTES} do
  visited[(i - 1) / ${VISIT_BYTES} + 1] = result[up('<I2', ARGV[6], i)] == 1 and sub(ARGV[6], i, i + ${VISIT_BYTES} - 1) or ''
end
visited = table.concat(visited)
if visited ~= '' then call('XADD', P .. 'visited', 'MAXLEN', '~', ${KEPT_ENTRIES}, '*', 'v', visited) end
local i, words, silent = 1, {}, {}
while i < #ARGV[3] do
  local host, size = up('<I4I2', ARGV[3], i)
  if size > 0 then words[#words + 1], words[#words + 2] = host, sub(ARGV[3], i + 6, i + 5 + size) else silent[#silent + 1] = host end
  i = i + 6 + size
end
many('HSET', 'hosts:words', words); many('HDEL', 'hosts:words', silent)
return result
