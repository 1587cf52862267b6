-- First step of a move: a page arrives under a new name, with all that is known of it.
-- ARGV  page (12 bytes), host, head, tail, memory (or empty)
-- Returns  1 if it is here now, or the stored value where it was known: the caller makes one head of both, and revises it. One that waits
--          for its first visit needs none now: it is replaced. O(log n); idempotent.
local id, known, sums = ARGV[1], call('HGET', P .. 'pages', ARGV[1]), {}
if known then
  local before, state, _, b = up(QUEUE, #known < HEAD and string.rep('\5', HEAD) or known)
  if b > 0 or state ~= ACTIVE or call('ZSCORE', P .. 'q', id) then return known end
  leave_first({[before] = {id}}, sums)
  note_page(known, -1, sums)
end
local head = pk('<I4', host_numbers({ARGV[2]})[1]) .. sub(ARGV[3], 5)
local _, state, _, b, a, s, e, l = up(QUEUE, head)
call('HSET', P .. 'pages', id, head .. ARGV[4])
call('HDEL', P .. 'aliases', id) -- it may have been one, and is a page again
if ARGV[5] ~= '' then call('HSET', P .. 'memory', id, ARGV[5]) end
if state < RETIRED then call('ZADD', P .. 'q', place(deadline(read_state()[${D_LOG_PRICE}], b, a, s, e, l)), id) end
note_page(head, 1, sums)
store_pages(sums)
return 1
