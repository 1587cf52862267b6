-- Tells that an owner is alive, and renews the leases of its live requests.
-- ARGV  owner, lease (s), then slot, token per lease
-- Returns  the number renewed. O(log n) a lease; idempotent.
local owner, lease_s, now = ARGV[1], tonumber(ARGV[2]), clock()
redis.call('ZADD', P .. 'owners', string.format('%.6f', now), owner)
local renewed = 0
for i = 3, #ARGV, 2 do
  local text = redis.call('HGET', P .. 'leases', ARGV[i])
  if text and parse_lease(text).token == ARGV[i + 1] then
    redis.call('ZADD', P .. 'leases:expiry', 'XX', string.format('%.6f', now + lease_s), ARGV[i])
    renewed = renewed + 1
  end
end
return renewed
