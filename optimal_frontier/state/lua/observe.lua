-- Ends leases, and stores what the judge made of their visits.
-- ARGV[1]  msgpack, a list: the pages as one string, by which visits are numbered; tokens (digits); of some visits, by number: which token
--          (others have the first), op (1 release, 2 drop, 3 rest: in no queue; others stay in it), memory (which of ARGV; 0: nothing is
--          remembered), change (fields of an entry of `changes`); and in turn what counters get for a visit, and whose, a byte each
-- ARGV[2]  visits that gave a bit, for the stream `visited` (state/visit_log.py), each begins with "<I2" its number (or empty)
-- then of each visit the value (head and tail; of op 1 if the page waits for its first visit again; of op 2 empty), then memories
-- Returns  a byte a visit: 1 if it was counted, 0 if the lease is not this token's any more. O(log n) a page; idempotent by token.
local pages, tokens, tokens_of, ops, memory_at, changes, counted = unpack(cmsgpack.unpack(ARGV[1]))
local L, amended, held = read_state()[${D_LOG_PRICE}], call('EXISTS', P .. 'amended') == 1, {}
for number = 1, #tokens do
  -- All pages of one handout have one token, so this is less than to ask for the score of each.
  local leased = call('ZRANGEBYSCORE', P .. 'q', tokens[number], tokens[number])
  for i = 1, #leased do held[leased[i]] = number end
end
local result, values, queue, leave, drop, first, memories, forgotten, refused = new_list(), new_list(), new_list(), {}, {}, {}, {}, {}, 0
for j = 1, #pages / PAGE do
  local id, op, value, at = sub(pages, PAGE * (j - 1) + 1, PAGE * j), ops[j], ARGV[2 + j], memory_at[j]
  if held[id] ~= (tokens_of[j] or 1) then result[j], refused = '\0', refused + 1 else
    result[j] = '\1'
    if not op or op == 3 then values[#values + 1], values[#values + 2] = id, value end
    if not op then queue[#queue + 1], queue[#queue + 2] = format('%d', place(deadline(L, up('<dffff', value, ${NUMBERS_AT})))), id
    elseif op == 1 and value == '' then queue[#queue + 1], queue[#queue + 2] = 2, id
    else leave[#leave + 1] = id end
    if op == 1 and value ~= '' then first[#first + 1], first[#first + 2] = value, id end
    if op == 2 then drop[#drop + 1] = id end
    if at == 0 then forgotten[#forgotten + 1] = id elseif at then memories[#memories + 1], memories[#memories + 2] = id, ARGV[at] end
  end
end
local sums, visits, settled = {ended = #result - refused, observations_refused = refused}, ARGV[2], {}
for i = 1, #counted, 2 do
  local times = #counted[i + 1]
  for k = 1, refused > 0 and times or 0 do times = times - 1 + byte(result[byte(counted[i + 1], k)]) end
  for name, by in pairs(counted[i]) do sums[name] = (sums[name] or 0) + by * times end
end
for i = 1, amended and #values or 0, 2 do
  local id = values[i] -- of a page that was yielded with another tail meanwhile that one stays
  local stored = call('SISMEMBER', P .. 'amended', id) == 1 and (call('HGET', P .. 'pages', id) or values[i + 1])
  if stored then settled[#settled + 1], values[i + 1] = id, sub(values[i + 1], 1, HEAD) .. sub(stored, HEAD + 1) end
end
call('HLEN', P .. 'pages'); store_counts(sums) -- a damaged key ends the call before it counts, a damaged counter before it writes more
many('SREM', 'amended', settled); many('HSET', 'pages', values); many('HDEL', 'pages', drop)
many('ZADD', 'q', queue); many('ZREM', 'q', leave); many('HSET', 'memory', memories); many('HDEL', 'memory', forgotten); queue_first(first)
local function add_change(fields) call('XADD', P .. 'changes', 'MAXLEN', '~', ${KEPT_CHANGES}, '*', unpack(fields)) end
for j, is in ipairs(result) do if changes[j] and is == '\1' then add_change(changes[j]) end end
local function if_counted(visit) return result[up('<I2', visit)] == '\1' and visit or '' end
if refused > 0 then visits = string.gsub(visits, string.rep('.', ${VISIT_BYTES}), if_counted) end
if visits ~= '' then call('XADD', P .. 'visited', 'MAXLEN', '~', '${KEPT_ENTRIES}', '*', 'v', visits) end
return table.concat(result)
