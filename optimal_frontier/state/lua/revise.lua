-- Rewrites heads of pages that are in no hands: somebody wants them now, brings them back, a signal moves them.
-- ARGV[1]  counters ("name=by name=by"), of each page that is rewritten;  then per page 3 values: page (12 bytes) and "<d" b of the head that
--          the new one was made from; head; memory ("": leave it, "-": nothing is remembered)
-- Returns  per page 1 (done), 0 (it is not known, or was visited since), 2 (under way, or waiting for its first visit). A page that is to be
--          fetched goes where its numbers say, any other leaves the queue; `stats` are kept. O(log n) a page; idempotent.
local d, result, queue, leave, done, sums = read_state(), {}, {}, {}, 0, {}
for i = 2, #ARGV, 3 do
  local id, b = sub(ARGV[i], 1, PAGE), up('<d', ARGV[i], PAGE + 1)
  local old, score = call('HGET', P .. 'pages', id), tonumber(call('ZSCORE', P .. 'q', id) or 0)
  local _, state, _, stored = up(QUEUE, old and #old >= HEAD and old or string.rep('\0', HEAD))
  if not old or #old < HEAD or stored ~= b then result[#result + 1] = 0
  elseif score % 2 == 1 or b == 0 and state < RETIRED then result[#result + 1] = 2
  else
    local _, to, flags, b_, a, s, e, l = up(QUEUE, ARGV[i + 1])
    local due = deadline(d[${D_LOG_PRICE}], b_, a, s, e, l)
    if flags % (2 * ${SIGNALLED}) >= ${SIGNALLED} and e == l and e > 0 and due <= (clock(d)) then due = FRONT end
    call('HSET', P .. 'pages', id, ARGV[i + 1] .. sub(old, HEAD + 1))
    note_page(old, -1, sums); note_page(ARGV[i + 1], 1, sums)
    if to < RETIRED then queue[#queue + 1], queue[#queue + 2] = place(due), id
    else leave[#leave + 1] = id end
    if ARGV[i + 2] == '-' then call('HDEL', P .. 'memory', id)
    elseif ARGV[i + 2] ~= '' then call('HSET', P .. 'memory', id, ARGV[i + 2]) end
    result[#result + 1], done = 1, done + 1
  end
end
many('ZADD', P .. 'q', queue)
many('ZREM', P .. 'q', leave)
add_counts(ARGV[1], done, sums)
store_pages(sums)
return result
