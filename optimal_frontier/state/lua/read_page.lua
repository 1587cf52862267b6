-- Reads everything that is known of a page, at one moment; writes nothing.
-- ARGV  fingerprint
-- Returns  false if it is not known, else {now (s), slot, page, seen, plan, content, record, lease, place in the queue (s), host name,
--          when a blocked host opens (s), published plan as a flat list, trust in the host's Last-Modified, in its sitemaps, in its 304s, memory}; what
--          there is not is false. O(1) and the published fields.
local slot = redis.call('HGET', P .. 'ids', ARGV[1])
if not slot then return false end
local t = redis.call('TIME')
local now = math.max(tonumber(t[1]) + tonumber(t[2]) / 1e6, tonumber(redis.call('HGET', P .. 'meta', 'clock') or '0'))
local index = tonumber(slot)
local host = tostring(read_page(index).host)
return {string.format('%.6f', now), slot, read_raw('page', index), read_raw('seen', index), read_raw('plan', index),
  read_raw('content', index), redis.call('HGET', P .. 'records', slot), redis.call('HGET', P .. 'leases', slot),
  redis.call('ZSCORE', P .. 'due:' .. host, slot), redis.call('HGET', P .. 'hosts:names', host),
  redis.call('ZSCORE', P .. 'hosts:blocked', host), redis.call('HGETALL', P .. 'published'),
  redis.call('HGET', P .. 'trust', host .. ':header'), redis.call('HGET', P .. 'trust', host .. ':sitemap'),
  redis.call('HGET', P .. 'trust', host .. ':validators'), redis.call('HGET', P .. 'memory', slot)}
