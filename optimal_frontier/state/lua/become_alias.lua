-- Second step of a move: what the page was called becomes another name of where it is, and its lease ends.
-- ARGV  page (12 bytes), "<d" token, alias ("<I4" partition, page, URL that it had), msgpack: counters, and fields of an entry of `changes`
-- Returns  1, or 0 if the lease is not this token's any more. O(log n); idempotent by token.
local id = ARGV[1]
local score, old = tonumber(call('ZSCORE', P .. 'q', id) or 0), call('HGET', P .. 'pages', id)
if not old or score ~= (up('<d', ARGV[2])) then return 0 end
remove({id}); call('HSET', P .. 'aliases', id, ARGV[3])
local sums, change = unpack(cmsgpack.unpack(ARGV[4]))
sums.ended = 1
if #old >= HEAD then note_page(old, -1, sums) end
store_pages(sums)
if change[1] then call('XADD', P .. 'changes', 'MAXLEN', '~', ${KEPT_CHANGES}, '*', unpack(change)) end
return 1
