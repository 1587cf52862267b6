-- Reads, for a reader that checks them, the heads of hosts' queues and what the sets of heads say; writes nothing.
-- ARGV  host numbers
-- Returns  per host {blocked (1 or 0), head of its deadlines (s), what hosts:due says (s), head of its first visits, what
--          hosts:firsthead says, 1 if hosts:first has that member}; what there is not is false. O(log n) a host.
local result = {}
for i, host in ipairs(ARGV) do
  local due = redis.call('ZRANGE', P .. 'due:' .. host, 0, 0, 'WITHSCORES')
  local first = redis.call('ZRANGE', P .. 'first:' .. host, 0, 0)
  local head = redis.call('HGET', P .. 'hosts:firsthead', host)
  result[i] = {redis.call('ZSCORE', P .. 'hosts:blocked', host) and 1 or 0, due[2] or false,
    redis.call('ZSCORE', P .. 'hosts:due', host), first[1] or false, head,
    head and redis.call('ZSCORE', P .. 'hosts:first', head .. host) and 1 or 0}
end
return result
