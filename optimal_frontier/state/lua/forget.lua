-- Forgets pages: head, tail, memory, place in the queues, lease, and their other names.
-- ARGV  per page 2 values: page (12 bytes), why it is put aside (empty: it is forgotten)
-- Returns  per page 1, or 0 if it is not known. O(log n) a page; idempotent.
local result, sums, forgotten = {}, {}, 0
for i = 1, #ARGV, 2 do
  local id, old = ARGV[i], call('HGET', P .. 'pages', ARGV[i])
  result[#result + 1] = old and 1 or 0
  if not old then
    call('HDEL', P .. 'aliases', id)
  else
    -- Of a damaged row nothing is known but that it was there.
    local host, state, _, b = up(QUEUE, #old < HEAD and string.rep('\5', HEAD) or old)
    local score = call('ZSCORE', P .. 'q', id)
    if b == 0 and state < RETIRED and score then sums.pending = (sums.pending or 0) - 1
    elseif b == 0 and state < RETIRED then leave_first(host, id, sums) end
    if score and score % 2 == 1 then sums.ended = (sums.ended or 0) + 1 end
    if #old >= HEAD and state <= DONE then note_page(old, -1, sums) end
    if ARGV[i + 1] ~= '' and call('HLEN', P .. 'damaged') < 10000 then
      sums.set_aside = (sums.set_aside or 0) + call('HSET', P .. 'damaged', id, ARGV[i + 1] .. '\0' .. sub(old, 1, 65536))
    end
    remove(id)
    forgotten = forgotten + 1
  end
end
store_pages(sums)
local d = read_state()
d[${D_FORGOTTEN}] = d[${D_FORGOTTEN}] + forgotten
if forgotten > 0 then write_state(d) end
return result
