-- Adds what visits have taught of sources of signals to what is known of them.
-- ARGV[1]  most: sums fade by half when signals and changes (the first three) are more;  then name and six doubles to add, of each
-- Returns  1. O(1) a source; not idempotent, and sums, so that the order of crawlers is no matter.
local SUMS = '<dddddd'
for i = 2, #ARGV, 2 do
  local old, sums = call('HGET', P .. 'sources', ARGV[i]), {up(SUMS, ARGV[i + 1])}
  local known = {up(SUMS, old and #old == 48 and old or string.rep('\0', 48))}
  for k = 1, 6 do sums[k] = sums[k] + known[k] end
  local fade = sums[1] + sums[2] + sums[3] > tonumber(ARGV[1]) and 0.5 or 1
  call('HSET', P .. 'sources', ARGV[i], pk(SUMS, sums[1] * fade, sums[2] * fade, sums[3] * fade, sums[4] * fade, sums[5] * fade, sums[6] * fade))
end
return 1
