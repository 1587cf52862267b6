-- Keeps requests from a host for a while, beyond its delay; one that is held for longer already stays so.
-- ARGV  host, seconds
-- Returns  1, or 0 if the host is not known. O(log n); idempotent.
local host = redis.call('HGET', P .. 'hosts', ARGV[1])
if not host then return 0 end
local opens = clock() + tonumber(ARGV[2])
local held = redis.call('ZSCORE', P .. 'hosts:blocked', host)
if not held or tonumber(held) < opens then redis.call('ZADD', P .. 'hosts:blocked', string.format('%.6f', opens), host) end
hide_host(host)
redis.call('HINCRBY', P .. 'stats', 'host_holds', 1)
return 1
