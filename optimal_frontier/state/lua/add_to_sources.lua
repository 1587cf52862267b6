-- Adds what visits have taught of sources of signals to their records.
-- ARGV  per source its name, and doubles: what is left of each number of its record, then what to add to each
-- Returns  1. O(1) a source; not idempotent. Crawlers may come in any order, and lose nothing of each other's.
for i = 1, #ARGV, 2 do
  local n, old = #ARGV[i + 1] / 8 - 1, call('HGET', P .. 'sources', ARGV[i])
  local add = {up('<' .. string.rep('d', n + 1), ARGV[i + 1])}
  local sums = old and #old == 8 * n and {up('<' .. string.rep('d', n), old)} or {}
  for k = 1, #sums do if sums[k] and sums[k] - sums[k] ~= 0 then sums = {} end end -- what is no number would stay so for ever
  for k = 1, n do sums[k] = (sums[k] or 0) * add[1] + add[k + 1] end
  call('HSET', P .. 'sources', ARGV[i], pk('<' .. string.rep('d', n), unpack(sums, 1, n)))
end
return 1
