-- Pages that are gone, for `observe`: retired one by one, but not while their host answers 404 or 410 for most of its pages.
-- Counts of pages seen and of pages found gone fade by a tenth with every one; a host that had only good ones has five to its credit.
-- It is held from so many gone ones on that are this share of all: four pages in a row of a new host, seven of one well known.
local FADING, CREDIT, LEAST_GONE, GONE_PART = 0.9, 5, 3, 0.5
-- Failures in a row that a page of a held host has at least (it is asked 4 to 9 minutes later), and after which it is retired all the same
-- (after five days of nothing else).
local HELD_FAILURES, GONE_FOR_GOOD = 9, 22
-- What was retired just before its host was held comes back: so many pages, retired within so many seconds.
local RETIRED_LATELY, LATELY_S = 32, 86400

local has_health = nil
local function read_health(host)
  if has_health == nil then has_health = redis.call('EXISTS', P .. 'health') == 1 end
  local text = has_health and redis.call('HGET', P .. 'health', host)
  if not text then return nil end
  local good, gone = string.match(text, '^(%S+) (%S+)$')
  return {good = tonumber(good), gone = tonumber(gone)}
end

local function is_held(health)
  return health and health.gone >= LEAST_GONE and health.gone >= GONE_PART * (health.good + health.gone)
end

-- Only hosts with gone pages have counts.
local function note_health(host, good, gone)
  local health = read_health(host)
  if not health then
    if gone == 0 then return end
    health = {good = CREDIT, gone = 0}
  end
  health.good, health.gone = health.good * FADING + good, health.gone * FADING + gone
  if health.gone < 0.05 then
    redis.call('HDEL', P .. 'health', host)
    redis.call('DEL', P .. 'retired:' .. host)
  else
    redis.call('HSET', P .. 'health', host, string.format('%.6g %.6g', health.good, health.gone))
    has_health = true
  end
end

local function bring_back(host, now, count)
  for _, slot in ipairs(redis.call('LRANGE', P .. 'retired:' .. host, 0, -1)) do
    local index = tonumber(slot)
    local p, s = read_page(index), parse_seen(read_raw('seen', index))
    if p.state == RETIRED and tostring(p.host) == host and now - s.last_attempt <= LATELY_S then
      p.state, s.failures = ACTIVE, math.max(s.failures, HELD_FAILURES)
      write_page(index, p)
      write_seen(index, s)
      redis.call('ZADD', P .. 'due:' .. host, number(earliest(p, s, parse_plan(read_raw('plan', index)))), slot)
      count('retired', -1)
      count('gone_held')
    end
  end
  redis.call('DEL', P .. 'retired:' .. host)
end

-- What a 404 or 410 means for a page, its failure counted: it is retired at the second in a row.
local function judge_gone(index, p, s, now, count)
  s.gone = s.gone + 1
  local host = tostring(p.host)
  if s.visits > 0 then
    -- Of a page that was never seen it says nothing of the others.
    local was_held = is_held(read_health(host))
    if s.gone == 1 then note_health(host, 0, 1) end
    if is_held(read_health(host)) and s.failures < GONE_FOR_GOOD then
      s.failures = math.max(s.failures, HELD_FAILURES)
      count('gone_held')
      if not was_held then bring_back(host, now, count) end
      return
    end
  end
  if s.gone > 1 and p.state == ACTIVE then
    p.state = RETIRED
    write_page(index, p)
    count('retired')
    if s.visits > 0 then
      redis.call('LPUSH', P .. 'retired:' .. host, index)
      redis.call('LTRIM', P .. 'retired:' .. host, 0, RETIRED_LATELY - 1)
    end
  end
end
