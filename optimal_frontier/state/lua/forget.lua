-- Forgets pages: head, tail, memory, place in the queues, lease, and their other names.
-- ARGV  pages (12 bytes)
-- Returns  per page 1, or 0 if it is not known. O(log n) a page; idempotent.
local result, sums, gone, aliases, first, done = {}, {}, {}, {}, {}, {}
local rows, scores = read('pages', ARGV), call('ZMSCORE', P .. 'q', unpack(ARGV))
for j, id in ipairs(ARGV) do
  local old, score = not done[id] and rows[j], scores[j]
  result[j] = old and 1 or 0
  if not old then aliases[#aliases + 1] = id else
    -- Of a damaged row nothing is known but that it was there.
    local host, state, _, b = up(QUEUE, #old < HEAD and string.rep('\5', HEAD) or old)
    if b == 0 and state < RETIRED and score then sums.pending = (sums.pending or 0) - 1
    elseif b == 0 and state < RETIRED then first[host] = first[host] or {}; table.insert(first[host], id) end
    if score and score % 2 == 1 then sums.ended = (sums.ended or 0) + 1 end
    if #old >= HEAD and state <= DONE then note_page(old, -1, sums) end
    done[id], gone[#gone + 1] = true, id
  end
end
many('HDEL', 'aliases', aliases)
leave_first(first, sums)
remove(gone)
store_pages(sums)
local d = read_state()
d[${D_FORGOTTEN}] = d[${D_FORGOTTEN}] + #gone
if gone[1] then write_state(d) end
return result
