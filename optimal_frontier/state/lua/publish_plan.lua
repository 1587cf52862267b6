-- Publishes a plan: what judges, dispatch and readers use until the next one.
-- ARGV  fence, step of the log price, log price ("": it is left where visits have moved it), priors, prices of hosts, youth of patterns
--       (packed), then field, value, ...
-- Returns  the number of the plan, or -1 if another planner has taken over. O(fields).
if call('GET', P .. 'fence') ~= ARGV[1] then return -1 end
local d = read_state()
d[${D_STEP}], d[${D_PLAN}] = tonumber(ARGV[2]), d[${D_PLAN}] + 1
-- A price of nothing, or of everything, is one beyond all others: infinite it would be no number with a slope of 0.
if ARGV[3] ~= '' then d[${D_LOG_PRICE}] = max(-1000, min(1000, tonumber(ARGV[3]))) end
write_state(d)
for i, name in ipairs({'priors', 'prices', 'youth'}) do call('SET', P .. name, ARGV[i + 3], 'KEEPTTL') end
local number = format('%d', d[${D_PLAN}])
call('HSET', P .. 'plan', 'number', number, unpack(ARGV, 7))
call('XADD', P .. 'plans', 'MAXLEN', 100, '*', 'number', number, unpack(ARGV, 7))
return d[${D_PLAN}]
