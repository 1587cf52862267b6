-- Forgets pages: head, tail, memory, place in the queues, lease, and their other names.
-- ARGV  per page 2 values: page (12 bytes), why it is put aside (empty: it is forgotten)
-- Returns  per page 1, or 0 if it is not known. O(log n) a page; idempotent.
local ids, result, sums, gone, aliases, first, aside = {}, {}, {}, {}, {}, {}, {}
for j = 1, #ARGV / 2 do ids[j] = ARGV[2 * j - 1] end
local rows, scores = read('pages', ids), call('ZMSCORE', P .. 'q', unpack(ids))
local done, room = {}, 10000 - call('HLEN', P .. 'damaged')
for j, id in ipairs(ids) do
  local old, score = not done[id] and rows[j], scores[j]
  result[j] = old and 1 or 0
  if not old then aliases[#aliases + 1] = id else
    -- Of a damaged row nothing is known but that it was there.
    local host, state, _, b = up(QUEUE, #old < HEAD and string.rep('\5', HEAD) or old)
    if b == 0 and state < RETIRED and score then sums.pending = (sums.pending or 0) - 1
    elseif b == 0 and state < RETIRED then first[host] = first[host] or {}; table.insert(first[host], id) end
    if score and score % 2 == 1 then sums.ended = (sums.ended or 0) + 1 end
    if #old >= HEAD and state <= DONE then note_page(old, -1, sums) end
    local is_kept = ARGV[2 * j] ~= '' and #aside < 2 * room
    if is_kept then aside[#aside + 1], aside[#aside + 2] = id, ARGV[2 * j] .. '\0' .. sub(old, 1, 65536) end
    done[id], gone[#gone + 1] = true, id
  end
end
if aside[1] then sums.set_aside = call('HSET', P .. 'damaged', unpack(aside)) end
many('HDEL', 'aliases', aliases)
leave_first(first, sums)
remove(gone)
store_pages(sums)
local d = read_state()
d[${D_FORGOTTEN}] = d[${D_FORGOTTEN}] + #gone
if gone[1] then write_state(d) end
return result
