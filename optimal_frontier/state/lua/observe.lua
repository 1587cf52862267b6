-- Ends leases, and stores what the judge made of their visits.
-- ARGV[1]  names that were retired: per page "<I4" host and the page; kept for the guard against mass deletion (or empty)
-- ARGV[2]  seconds of lateness, separated by blanks
-- ARGV[3]  words of hosts: packed "<I4I2" host, size, then the words, of each
-- then per lease 5 values: page (12), "<dB" token and op (0 keep, 1 release, 2 drop, 3 rest: in no queue); head; memory ("": leave it, "-":
--          nothing is remembered); counters ("name=by name=by"); change ("": none; else previous and new fingerprint in hexadecimal, URL)
-- Returns  per lease 1 if it was counted, 0 if it is not this token's any more. Variadic commands, O(log n) a page; idempotent by token.
local PER, OPS = 5, {keep = 0, release = 1, drop = 2, rest = 3}
local d = read_state()
local L, n = d[4], (#ARGV - 3) / PER
local result, ids = {}, {}
for j = 1, n do ids[j] = sub(ARGV[PER * j - 1], 1, PAGE) end
if n == 0 then return result end
local scores, stored = call('ZMSCORE', P .. 'q', unpack(ids)), call('HMGET', P .. 'pages', unpack(ids))
local values, queue, leave, forget, back, remembered, unremembered, kept = {}, {}, {}, {}, {}, {}, {}, {}
local counters, ended, refused = {}, 0, 0
for j = 1, n do
  local at = PER * j - 1
  local token, op = up('<dB', ARGV[at], PAGE + 1)
  local id, old, head, memory = ids[j], stored[j], ARGV[at + 1], ARGV[at + 2]
  if not old or tonumber(scores[j] or 0) ~= token then
    result[j], refused = 0, refused + 1
  else
    result[j], ended = 1, ended + 1
    local counted = ARGV[at + 3]
    if counted ~= '' then counters[counted] = (counters[counted] or 0) + 1 end
    if op == OPS.release then
      local _, _, _, b = up(QUEUE, old)
      if b == 0 then
        leave[#leave + 1] = id
        back[#back + 1], back[#back + 2] = old, id
      else queue[#queue + 1], queue[#queue + 2] = 2, id end
    elseif op == OPS.drop then
      leave[#leave + 1], forget[#forget + 1] = id, id
    else
      local _, _, _, b, a, s, e, l = up(QUEUE, head)
      values[#values + 1], values[#values + 2] = id, head .. sub(old, HEAD + 1)
      if op == OPS.keep then queue[#queue + 1], queue[#queue + 2] = place(deadline(L, b, a, s, e, l)), id
      else leave[#leave + 1] = id end
      if memory == '-' then unremembered[#unremembered + 1] = id
      elseif memory ~= '' then remembered[#remembered + 1], remembered[#remembered + 2] = id, memory end
      local change = ARGV[at + 4]
      if change ~= '' then
        call('XADD', P .. 'changes', 'MAXLEN', '~', 10000, '*', 'page', id, 'time', string.format('%.6f', b / 1e6),
          'url', sub(change, 65), 'previous', sub(change, 1, 32), 'fingerprint', sub(change, 33, 64))
      end
    end
  end
end
many('HSET', P .. 'pages', values)
many('ZADD', P .. 'q', queue)
many('ZREM', P .. 'q', leave)
many('HDEL', P .. 'pages', forget)
many('HSET', P .. 'memory', remembered)
many('HDEL', P .. 'memory', unremembered)
if #back > 0 then queue_first(back) end
for i = 1, #ARGV[1], PAGE + 4 do
  local key = P .. 'retired:' .. up('<I4', ARGV[1], i)
  call('LPUSH', key, sub(ARGV[1], i + 4, i + 3 + PAGE))
  call('LTRIM', key, 0, 31)
end
local late = {}
for value in string.gmatch(ARGV[2], '%S+') do late[#late + 1] = value end
if #late > 0 then
  call('LPUSH', P .. 'lateness', unpack(late))
  call('LTRIM', P .. 'lateness', 0, 999)
end
local i, words = 1, {}
while i < #ARGV[3] do
  local host, size = up('<I4I2', ARGV[3], i)
  if size > 0 then words[#words + 1], words[#words + 2] = host, sub(ARGV[3], i + 6, i + 5 + size)
  else call('HDEL', P .. 'hosts:words', host) end
  i = i + 6 + size
end
many('HSET', P .. 'hosts:words', words)
local sums = {ended = ended, observations_refused = refused}
for text, times in pairs(counters) do add_counts(text, times, sums) end
store_counts(sums)
return result
