-- Rewrites heads of pages that are in no hands: somebody wants them now, brings them back, a signal moves them; or what is remembered.
-- ARGV[1]  what a counter gets for each page that is rewritten ("name=by", or empty);  then per page 3 values: page (12 bytes) and "<d" b of
--          the head that the new one was made from; head and memory ("": leave it; "-" of a memory: nothing is remembered)
-- Returns  per page 1 (done), 0 (it is not known, or was visited since), 2 (under way, or waiting for its first visit, which keeps its head).
--          A page that is to be fetched goes where its numbers say, any other leaves the queue; `stats` are kept. O(log n); idempotent.
local d, ids, done, sums, result, values, queue, leave, memories, forgotten = read_state(), {}, {}, {}, {}, {}, {}, {}, {}, {}
for i = 2, #ARGV, 3 do ids[#ids + 1] = sub(ARGV[i], 1, PAGE) end
local rows, scores = read('pages', ids), call('ZMSCORE', P .. 'q', unpack(ids))
for j, id in ipairs(ids) do
  local b, head, memory, old = up('<d', ARGV[3 * j - 1], PAGE + 1), ARGV[3 * j], ARGV[3 * j + 1], not done[id] and rows[j]
  local _, state, _, stored = up(QUEUE, old and #old >= HEAD and old or string.rep('\0', HEAD))
  if not old or #old < HEAD or stored ~= b then result[j] = 0
  elseif (scores[j] or 0) % 2 == 1 or head ~= '' and b == 0 and state < RETIRED then result[j] = 2
  else
    done[id], result[j] = true, 1
    if memory == '-' then forgotten[#forgotten + 1] = id elseif memory ~= '' then memories[#memories + 1], memories[#memories + 2] = id, memory end
    if head ~= '' then
      local _, to, flags, b_, a, s, e, l = up(QUEUE, head)
      local due = deadline(d[${D_LOG_PRICE}], b_, a, s, e, l)
      if has(flags, ${SIGNALLED}) and e == l and e > 0 and due <= (clock(d)) then due = FRONT end
      values[#values + 1], values[#values + 2] = id, head .. sub(old, HEAD + 1); note_page(old, -1, sums); note_page(head, 1, sums)
      if to < RETIRED then queue[#queue + 1], queue[#queue + 2] = format('%d', place(due)), id else leave[#leave + 1] = id end
    end
  end
end
many('HSET', 'pages', values); many('HSET', 'memory', memories); many('HDEL', 'memory', forgotten)
many('ZADD', 'q', queue); many('ZREM', 'q', leave)
for counter, by in string.gmatch(ARGV[1], '(.+)=(.+)') do sums[counter] = #values / 2 * by end
store_pages(sums)
return result
