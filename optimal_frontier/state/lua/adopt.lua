-- First step of a move: a page arrives under a new name, with all that is known of it.
-- ARGV  page (12 bytes), host, head, tail, memory (or empty)
-- Returns  1 if it is here now, or the stored value where it was known: the caller makes one head of both, and revises it. One that waits
--          for its first visit needs none now: it is replaced. O(log n); idempotent.
local id, known = ARGV[1], call('HGET', P .. 'pages', ARGV[1])
if known then
  local before, state, _, b = up(QUEUE, known)
  if b > 0 or state ~= ACTIVE or call('ZSCORE', P .. 'q', id) then return known end
  call('ZREM', P .. 'f:' .. before, id)
  if tonumber(call('ZSCORE', P .. 'f', before) or 0) <= 0 then sync_first(before) end
  call('HINCRBY', P .. 'stats', 'pending', -1)
  call('HINCRBY', P .. 'stats', 'pages', -1)
  call('HINCRBY', P .. 'kept', 'h' .. before, -1)
  call('HINCRBY', P .. 'kept', 'p' .. up('<I4', known, ${PATTERN_AT}), -1)
end
local host = call('HGET', P .. 'hosts', ARGV[2])
if not host then
  host = call('HLEN', P .. 'hosts') + 1
  call('HSET', P .. 'hosts', ARGV[2], host)
  call('HSET', P .. 'hosts:names', host, ARGV[2])
end
local head = pk('<I4', tonumber(host)) .. sub(ARGV[3], 5)
local _, _, _, b, a, s, e, l = up(QUEUE, head)
call('HSET', P .. 'pages', id, head .. ARGV[4])
-- It was an alias once, and is a page again.
call('HDEL', P .. 'aliases', id)
if ARGV[5] ~= '' then call('HSET', P .. 'memory', id, ARGV[5]) end
call('ZADD', P .. 'q', place(deadline(read_state()[4], b, a, s, e, l)), id)
call('HINCRBY', P .. 'stats', 'pages', 1)
if up('<I4', head, ${VISITS_AT}) > 0 then call('HINCRBY', P .. 'stats', 'fetched', 1) end
call('HINCRBY', P .. 'kept', 'h' .. host, 1)
call('HINCRBY', P .. 'kept', 'p' .. up('<I4', head, ${PATTERN_AT}), 1)
return 1
