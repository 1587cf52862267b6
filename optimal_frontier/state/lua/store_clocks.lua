-- Stores what a planner has learned of clocks of neighbourhoods.
-- ARGV  fence, id of the last entry of `visited` that was learned from (or empty), then field, value (empty: it goes), ...
-- Returns  1, or -1 if another planner has taken over. O(1) a field; idempotent.
if call('GET', P .. 'fence') ~= ARGV[1] then return -1 end
local kept, gone = ARGV[2] ~= '' and {'last', ARGV[2]} or {}, {}
for i = 3, #ARGV, 2 do
  if ARGV[i + 1] == '' then gone[#gone + 1] = ARGV[i] else kept[#kept + 1], kept[#kept + 2] = ARGV[i], ARGV[i + 1] end
end
many('HSET', 'clocks', kept); many('HDEL', 'clocks', gone)
return 1
