-- Pays for fetches that are no dispatch (redirects, retries, robots.txt), below zero if need be.
-- ARGV  budget (1/s), number of fetches
-- Returns  seconds until the bucket is above zero again. O(1).
local budget, n, now = tonumber(ARGV[1]), tonumber(ARGV[2]), clock()
redis.call('HINCRBY', P .. 'stats', 'extra_fetches', n)
if budget <= 0 then return '0' end
local bucket = redis.call('HMGET', P .. 'bucket', 'tokens', 'at')
local depth = math.max(1, 0.1 * budget)
local tokens = bucket[1] and math.min(depth, tonumber(bucket[1]) + budget * (now - tonumber(bucket[2]))) or 1
tokens = tokens - n
redis.call('HSET', P .. 'bucket', 'tokens', number(tokens), 'at', string.format('%.6f', now))
return number(math.max(0, -tokens / budget))
