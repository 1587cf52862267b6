-- Writes numbers that a plan has made anew.
-- ARGV[1]  fence;  ARGV[2]  per page: page (12 bytes), "<dffff" b, a, s, e, l
-- Returns  how many were written, -1 if another planner has taken over. Pages visited since, or under way, keep their newer numbers; so do
--          signalled, checked and forced ones. One that is due, and stands at a turn of its host, stays there. Variadic; idempotent.
if call('GET', P .. 'fence') ~= ARGV[1] then return -1 end
local ids, size = {}, PAGE + ${NUMBERS_BYTES}
for i = 1, #ARGV[2], size do ids[#ids + 1] = sub(ARGV[2], i, i + PAGE - 1) end
local stored, scores = call('HMGET', P .. 'pages', unpack(ids)), call('ZMSCORE', P .. 'q', unpack(ids))
local d = read_state(); local L, now, values, queue = d[${D_LOG_PRICE}], (clock(d)), {}, {}
for j = 1, #ids do
  local old, score = stored[j], tonumber(scores[j] or 1)
  if old and #old >= HEAD and score % 2 == 0 then
    local at = size * (j - 1) + PAGE + 1; local b, a, s, e, l = up('<dffff', ARGV[2], at)
    if up('<d', old, ${NUMBERS_AT}) == b and byte(old, ${STATE_AT} + 1) % ${TIMED} == 0 then
      values[#values + 1], values[#values + 2] = ids[j], sub(old, 1, ${NUMBERS_AT} - 1) .. sub(ARGV[2], at, at + ${NUMBERS_BYTES} - 1)
        .. sub(old, ${NUMBERS_AT} + ${NUMBERS_BYTES})
      local due, was = deadline(L, b, a, s, e, l), deadline(L, up('<dffff', old, ${NUMBERS_AT}))
      if score <= now or due > now or was > now then queue[#queue + 1], queue[#queue + 2] = place(due), ids[j] end
    end
  end
end
many('HSET', 'pages', values); many('ZADD', 'q', queue)
return #values / 2
