-- Takes in what a source says of the last change of pages: notes it, and puts pages forward that have changed since they were seen.
-- ARGV  announcer ("host kind"), seconds since the source was read before (-1: never), then per page 3 values: fingerprint, last change (s since the
--       epoch), its resolution (s)
-- Returns  how many were put forward. O(log n) a page; idempotent: what was said before is no news.
-- A page that is put forward is due as soon as its least interval (and, if it failed, its backoff) is over; a retired one is revived; one in flight
-- is due again after its lease. Its next bit says whether the announcer was right.
local now, live = clock(), read_live()
local name, unread = ARGV[1], tonumber(ARGV[2])
-- Seconds by which the site's clock may differ from ours; a rougher word may mean any time in its resolution.
local CLOCKS_S, ROUGH_S = 2, 60
local put_forward, stats = 0, {}
local function count(field) stats[field] = (stats[field] or 0) + 1 end
local a = read_announcer(name)
local function has_say()
  if not a.silenced then return a.waiting < a.window, 'announcements_held' end
  a.passed_over = a.passed_over + 1
  if a.passed_over < PROBE_EVERY or a.waiting > 0 then return false, 'announcements_distrusted' end
  a.passed_over = 0
  return true
end
for i = 3, #ARGV, 3 do
  local slot, modified, resolution = redis.call('HGET', P .. 'ids', ARGV[i]), tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  if slot and modified <= now + resolution then
    local index = tonumber(slot)
    local p, s, q = read_page(index), parse_seen(read_raw('seen', index)), parse_plan(read_raw('plan', index))
    local before = tonumber(string.match(redis.call('HGET', P .. 'lastmod', slot) or '', '^%S+') or nil)
    -- One that waits for its first visit may have been seen under another name; it stands among the first visits.
    local is_page = p.state == RETIRED or p.state == ACTIVE and s.visits > 0 and s.attempts > 0
    -- It is no fair sample of ages: what has not moved was not passed on, and what is found because it is new is young. So it is noted as too
    -- rough to be used as one, but for what a source says of its pages when it is first read.
    local is_sample = s.attempts == 0 and unread < 0
    if s.attempts > 0 or is_sample then
      local rough = is_sample and ARGV[i + 2] or number(INFINITE)
      redis.call('HSET', P .. 'lastmod', slot, ARGV[i + 1] .. ' ' .. rough .. ' ' .. string.format('%.6f', now))
    end
    local seen_by = modified + (resolution > ROUGH_S and resolution / 2 or CLOCKS_S)
    -- What was said since the source was read before has happened since then, whatever the site's clock says.
    local is_unseen = seen_by > s.last_seen or (before and unread >= 0 and s.last_seen < now - unread)
    if is_page and (not before or modified > before) and is_unseen then
      count('announced')
      local lease = redis.call('HGET', P .. 'leases', slot)
      local known = redis.call('HEXISTS', P .. 'announced', slot) == 1
      local may, why = false, nil
      if lease or not known then may, why = has_say() end
      if may then
        if known then settle_announcement(slot, -1, a, name) end
        a.waiting = a.waiting + 1
        local have = credit(s, q, now)
        mark_announced(slot, now, have, seen_by, resolution <= ROUGH_S and modified <= s.last_seen, name)
        if p.state == RETIRED then
          p.state, s.failures, s.gone = ACTIVE, 0, 0
          if s.visits == 0 then s.last_attempt = 0 end
          write_page(index, p)
          redis.call('HDEL', P .. 'failed', slot)
          redis.call('HINCRBY', P .. 'stats', 'retired', -1)
        end
        if not lease then
          lend_credit(slot, s, live, now)
          write_seen(index, s)
          local due = math.max(now, earliest(p, s, q))
          redis.call('ZADD', P .. 'due:' .. p.host, string.format('%.6f', due), slot)
          sync_host(tostring(p.host))
        end
        count('put_forward')
        put_forward = put_forward + 1
      elseif why then
        count(why)
      end
    end
  end
end
if stats.announced then write_announcer(name, a) end
for field, by in pairs(stats) do redis.call('HINCRBY', P .. 'stats', field, by) end
return put_forward
