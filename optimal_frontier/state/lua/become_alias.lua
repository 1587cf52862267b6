-- Second step of a move: what the page was called becomes another name of where it is, and its lease ends.
-- ARGV  page (12 bytes), "<d" token, alias ("<I4" partition, page, URL that it had), then counters: name, number
-- Returns  1, or 0 if the lease is not this token's any more. O(log n); idempotent by token.
local id = ARGV[1]
local score, old = tonumber(call('ZSCORE', P .. 'q', id) or 0), call('HGET', P .. 'pages', id)
if not old or score ~= (up('<d', ARGV[2])) then return 0 end
remove({id})
call('HSET', P .. 'aliases', id, ARGV[3])
local sums = {ended = 1}
for i = 4, #ARGV, 2 do sums[ARGV[i]] = tonumber(ARGV[i + 1]) end
if #old >= HEAD then note_page(old, -1, sums) end
store_pages(sums)
return 1
