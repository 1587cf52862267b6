-- Renews leases of live requests.
-- ARGV  per lease its page, and "<dd" token, new token (odd, and later)
-- Returns  per lease 1 if it is still held, 0 if not. O(log n) a lease; idempotent: old and new token both answer 1.
local ids, result, queue = {}, {}, {}
for i = 1, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
for j, score in ipairs(call('ZMSCORE', P .. 'q', unpack(ids))) do
  local held, token, new = tonumber(score or 0), up('<dd', ARGV[2 * j])
  if held == token then queue[#queue + 1], queue[#queue + 2] = new, ids[j] end
  result[j] = (held == token or held == new) and 1 or 0
end
many('ZADD', 'q', queue)
return result
