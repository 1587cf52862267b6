-- Stores what a planner has learned of clocks of neighbourhoods.
-- ARGV  fence, msgpack of the fields that go (a list), then field, value, ... of those that stay
-- Returns  1, or -1 if another planner has taken over. O(1) a field; idempotent.
if call('GET', P .. 'fence') ~= ARGV[1] then return -1 end
many('HDEL', 'clocks', cmsgpack.unpack(ARGV[2])); many('HSET', 'clocks', {unpack(ARGV, 3)})
return 1
