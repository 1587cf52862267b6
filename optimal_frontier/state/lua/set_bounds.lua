-- Applies changed rules to stored pages. An importance that was stated stays.
-- ARGV  per page 8 values: slot, generation, importance (0: leave it), min_rate, max_rate (1/s), gap (s), kind (1 page, 2 once),
--       timetable (or empty)
-- Returns  the number changed. O(1) a page; idempotent.
local changed = 0
for i = 1, #ARGV, 8 do
  local slot = tonumber(ARGV[i])
  local p = read_page(slot)
  if p.state == ACTIVE and p.generation == tonumber(ARGV[i + 1]) then
    local importance = tonumber(ARGV[i + 2])
    if importance > 0 and redis.call('GETBIT', P .. 'stated', slot) == 0 then p.importance = importance end
    p.min_rate, p.max_rate, p.gap = tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4]), tonumber(ARGV[i + 5])
    if tonumber(ARGV[i + 6]) == ONCE then
      p.state = parse_seen(read_raw('seen', slot)).attempts > 0 and DONE or ONCE
      redis.call('HINCRBY', P .. 'stats', 'pages', -1)
      settle_announcement(slot, -1)
      if p.state == DONE then
        redis.call('ZREM', P .. 'due:' .. p.host, slot)
        sync_host(tostring(p.host))
      end
    end
    write_page(slot, p)
    set_timetable(slot, ARGV[i + 7])
    changed = changed + 1
  end
end
return changed
