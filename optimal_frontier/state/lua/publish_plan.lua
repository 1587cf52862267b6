-- Publishes a plan: what `observe` and readers use until the next one.
-- ARGV  fence, then field, value, ...
-- Returns  1, or 0 if another planner has taken over. O(fields).
if redis.call('HGET', P .. 'meta', 'fence') ~= ARGV[1] then return 0 end
local fields = {}
for i = 2, #ARGV do fields[#fields + 1] = ARGV[i] end
redis.call('HSET', P .. 'published', unpack(fields))
redis.call('XADD', P .. 'plans', 'MAXLEN', 100, '*', unpack(fields))
return 1
