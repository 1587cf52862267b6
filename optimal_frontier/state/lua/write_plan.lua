-- Writes numbers that a plan has made anew.
-- ARGV[1]  fence;  ARGV[2]  per page: page (12 bytes), "<dffff" b, a, s, e, l
-- Returns  how many were written, -1 if another planner has taken over. Pages that were visited since, or are under way, keep their own
--          numbers, which are newer; so do those that are signalled, checked or forced. Variadic; idempotent.
if call('GET', P .. 'fence') ~= ARGV[1] then return -1 end
local ids, size = {}, PAGE + ${NUMBERS_BYTES}
for i = 1, #ARGV[2], size do ids[#ids + 1] = sub(ARGV[2], i, i + PAGE - 1) end
local stored, scores = call('HMGET', P .. 'pages', unpack(ids)), call('ZMSCORE', P .. 'q', unpack(ids))
local L, values, queue = read_state()[${D_LOG_PRICE}], {}, {}
for j = 1, #ids do
  local old, score = stored[j], tonumber(scores[j] or 1)
  if old and #old >= HEAD and score % 2 == 0 then
    local at = size * (j - 1) + PAGE + 1
    local b, a, s, e, l = up('<dffff', ARGV[2], at)
    if up('<d', old, ${NUMBERS_AT}) == b and string.byte(old, ${STATE_AT} + 1) % ${TIMED} == 0 then
      values[#values + 1], values[#values + 2] = ids[j], sub(old, 1, ${NUMBERS_AT} - 1) .. sub(ARGV[2], at, at + ${NUMBERS_BYTES} - 1)
        .. sub(old, ${NUMBERS_AT} + ${NUMBERS_BYTES})
      queue[#queue + 1], queue[#queue + 2] = place(deadline(L, b, a, s, e, l)), ids[j]
    end
  end
end
many('HSET', 'pages', values); many('ZADD', 'q', queue)
return #queue / 2
