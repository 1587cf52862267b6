-- Second step of a move: what the page was called becomes another name of where it is, and its lease ends.
-- ARGV  page (12 bytes), "<d" token, alias ("<I4" partition, page, URL that it had), counters ("name=by name=by"), other names of it (12 bytes
--       each) that point to where it is now
-- Returns  1, or 0 if the lease is not this token's any more. O(log n); idempotent by token.
local id = ARGV[1]
local score, old = tonumber(call('ZSCORE', P .. 'q', id) or 0), call('HGET', P .. 'pages', id)
if not old or score ~= (up('<d', ARGV[2])) then return 0 end
remove({id})
call('HSET', P .. 'aliases', id, ARGV[3])
for at = 1, #ARGV[5], PAGE do
  local name = sub(ARGV[5], at, at + PAGE - 1)
  local known = call('HGET', P .. 'aliases', name)
  if known then call('HSET', P .. 'aliases', name, sub(ARGV[3], 1, 4 + PAGE) .. sub(known, 5 + PAGE)) end
end
local sums = {ended = 1}
if #old >= HEAD then note_page(old, -1, sums) end
add_counts(ARGV[4], 1, sums)
store_pages(sums)
return 1
