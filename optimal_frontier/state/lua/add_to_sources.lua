-- Adds what visits have taught of sources of signals to their records.
-- ARGV  per source its name, and seven doubles: what is left of each number that is known of it, and six numbers to add
-- Returns  1. O(1) a source; not idempotent. Crawlers may come in any order, and lose nothing of each other's.
for i = 1, #ARGV, 2 do
  local old, add, sums = call('HGET', P .. 'sources', ARGV[i]), {up('<ddddddd', ARGV[i + 1])}, {0, 0, 0, 0, 0, 0}
  if old and #old == 48 then sums = {up('<dddddd', old)} end
  for k = 1, 6 do sums[k] = sums[k] * add[1] + add[k + 1] end
  call('HSET', P .. 'sources', ARGV[i], pk('<dddddd', unpack(sums, 1, 6)))
end
return 1
