-- An owner goes: what it still holds goes back on the queue at once.
-- ARGV  owner
-- Returns  the number of leases given back. O(log n) a lease; idempotent.
local slots = redis.call('SMEMBERS', P .. 'owner:' .. ARGV[1])
clock()
for _, slot in ipairs(slots) do
  local text = redis.call('HGET', P .. 'leases', slot)
  if text then
    local lease = parse_lease(text)
    if lease.owner == ARGV[1] then requeue(slot, lease) end
  end
end
redis.call('DEL', P .. 'owner:' .. ARGV[1])
redis.call('ZREM', P .. 'owners', ARGV[1])
return #slots
