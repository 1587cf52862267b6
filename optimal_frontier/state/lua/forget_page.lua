-- Forgets a page: estimate, history, place in the queues, lease, all of its names.
-- ARGV  fingerprint, of the page or of an alias
-- Returns  1, or 0 if it is not known. O(log n) (first visits of its host: O(m)); idempotent.
local slot = redis.call('HGET', P .. 'ids', ARGV[1])
if not slot then return 0 end
clock()
local p, s = read_page(tonumber(slot)), parse_seen(read_raw('seen', tonumber(slot)))
local text = redis.call('HGET', P .. 'leases', slot)
if text then drop_lease(slot, parse_lease(text).owner) end
redis.call('ZREM', P .. 'due:' .. p.host, slot)
if s.attempts == 0 then
  for _, member in ipairs(redis.call('ZRANGE', P .. 'first:' .. p.host, 0, -1)) do
    local _, _, other = struct.unpack('>ddI4', member)
    if other == tonumber(slot) then redis.call('ZREM', P .. 'first:' .. p.host, member) end
  end
  redis.call('HINCRBY', P .. 'stats', 'pending', -1)
end
if p.state == ACTIVE or p.state == RETIRED then redis.call('HINCRBY', P .. 'stats', 'pages', -1) end
if p.state == RETIRED then redis.call('HINCRBY', P .. 'stats', 'retired', -1) end
if s.visits > 0 then redis.call('HINCRBY', P .. 'stats', 'fetched', -1) end
forget_names(slot, ARGV[1])
free_slot(tonumber(slot), p)
redis.call('HINCRBY', P .. 'meta', 'epoch', 1)
sync_host(tostring(p.host))
return 1
