-- Takes or keeps the planner's lock.
-- ARGV  owner, time to live (ms)
-- Returns  the fencing token, or 0 if another holds the lock. O(1).
local key = P .. 'planner'
local holder = redis.call('GET', key)
if holder == ARGV[1] then
  redis.call('PEXPIRE', key, ARGV[2])
  return tonumber(redis.call('HGET', P .. 'meta', 'fence'))
end
if holder then return 0 end
redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
return redis.call('HINCRBY', P .. 'meta', 'fence', 1)
