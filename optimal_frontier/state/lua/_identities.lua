-- Names of hosts, patterns and pages, for scripts that add, move and forget pages.
-- What a host has beyond its share of patterns is of one that is called '' and has no limit but that of the namespace; 0: none.
local HOST_PATTERNS, MOST_PATTERNS = 200, 100000
-- Of more aliases of a page the oldest are given up: a link to one of them makes a page of it, until it moves again.
local MOST_ALIASES = 1000

local function host_number(name)
  local host = redis.call('HGET', P .. 'hosts', name)
  if not host then
    host = tostring(redis.call('HLEN', P .. 'hosts') + 1)
    redis.call('HSET', P .. 'hosts', name, host)
    redis.call('HSET', P .. 'hosts:names', host, name)
  end
  return host
end

local function pattern_number(host, text)
  local known = redis.call('HGET', P .. 'patterns', host .. ' ' .. text)
  if known then return tonumber(known) end
  local of_host = tonumber(redis.call('HGET', P .. 'patterns:hosts', host) or '0')
  if text ~= '' and of_host >= HOST_PATTERNS then return pattern_number(host, '') end
  if redis.call('HLEN', P .. 'patterns') >= MOST_PATTERNS then return 0 end
  local new = redis.call('HLEN', P .. 'patterns') + 1
  redis.call('HSET', P .. 'patterns', host .. ' ' .. text, new)
  redis.call('HSET', P .. 'patterns:hosts', host, of_host + 1)
  return new
end

-- `from`, whose URL was `url`, is another name of the page at `slot`, which is called `to`.
local function add_alias(slot, from, to, url)
  redis.call('HSET', P .. 'aliases', from, to .. url)
  redis.call('RPUSH', P .. 'aliased:' .. slot, from)
  if redis.call('LLEN', P .. 'aliased:' .. slot) > MOST_ALIASES then
    local oldest = redis.call('LPOP', P .. 'aliased:' .. slot)
    redis.call('HDEL', P .. 'aliases', oldest)
    redis.call('HDEL', P .. 'ids', oldest)
  end
end

-- The page at `slot` is called `to` now.
local function point_aliases(slot, to)
  for _, name in ipairs(redis.call('LRANGE', P .. 'aliased:' .. slot, 0, -1)) do
    redis.call('HSET', P .. 'aliases', name, to .. string.sub(redis.call('HGET', P .. 'aliases', name), 21))
  end
end

local function forget_names(slot, name)
  local alias = redis.call('HGET', P .. 'aliases', name)
  redis.call('HDEL', P .. 'ids', alias and string.sub(alias, 1, 20) or name)
  for _, other in ipairs(redis.call('LRANGE', P .. 'aliased:' .. slot, 0, -1)) do
    redis.call('HDEL', P .. 'ids', other)
    redis.call('HDEL', P .. 'aliases', other)
  end
  redis.call('DEL', P .. 'aliased:' .. slot)
end
