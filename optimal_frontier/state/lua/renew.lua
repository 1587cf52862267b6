-- Renews leases of live requests.
-- ARGV[1]  per lease "<dd" token, new token (odd, and later) after its page (12 bytes)
-- Returns  per lease 1 if it is still held, 0 if not. O(log n) a lease; idempotent: old and new token both answer 1.
local ids, size = {}, PAGE + 16
for i = 1, #ARGV[1], size do ids[#ids + 1] = sub(ARGV[1], i, i + PAGE - 1) end
if #ids == 0 then return {} end
local scores, result, queue = call('ZMSCORE', P .. 'q', unpack(ids)), {}, {}
for j = 1, #ids do
  local token, new = up('<dd', ARGV[1], size * (j - 1) + PAGE + 1)
  local score = tonumber(scores[j] or 0)
  if score == token then queue[#queue + 1], queue[#queue + 2] = new, ids[j] end
  result[j] = (score == token or score == new) and 1 or 0
end
many('ZADD', 'q', queue)
return result
