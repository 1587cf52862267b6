-- Says whether pages are dispatched by price; starts the price if there is none, and lets it go on if there is and visits follow it.
-- ARGV  fence, dispatch (edf, index), objective (freshness, changes), price to start from, most seconds until a page is looked at again
-- Returns  1, or 0 if another planner has taken over. O(hosts); idempotent.
if redis.call('HGET', P .. 'meta', 'fence') ~= ARGV[1] then return 0 end
if ARGV[2] ~= 'index' then
  redis.call('DEL', P .. 'price')
  return 1
end
local said = redis.call('HMGET', P .. 'price', 'price', 'objective', 'at')
local price = tonumber(said[1] or '0')
local is_idle = tonumber(said[3] or '0') < tonumber(redis.call('HGET', P .. 'published', 'time') or '0')
if price <= 0 or said[2] ~= ARGV[3] or is_idle then
  -- What visits were worth is in another unit, or none was made since the last plan: at a price that nothing reaches nothing would lower it.
  redis.call('DEL', P .. 'price')
  price = tonumber(ARGV[4])
end
local highest, fields = price, redis.call('HGETALL', P .. 'price')
for i = 1, #fields, 2 do
  if string.sub(fields[i], 1, 2) == 'h:' then highest = math.max(highest, tonumber(fields[i + 1])) end
end
redis.call('HSET', P .. 'price', 'price', number(price), 'at', string.format('%.6f', is_idle and clock() or tonumber(said[3] or clock())), 'objective', ARGV[3], 'look', ARGV[5],
  'highest', number(highest))
return 1
