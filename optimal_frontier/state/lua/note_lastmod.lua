-- Notes what sitemaps say about the last change of known pages: their latest word, and when it was said.
-- ARGV  per page 3 values: fingerprint, last change (s since the epoch), its resolution (s)
-- Returns  how many were noted: not what lies in the future by more than its resolution. O(1) a page; idempotent but for the time.
local now = clock()
local noted = 0
for i = 1, #ARGV, 3 do
  local slot, modified, resolution = redis.call('HGET', P .. 'ids', ARGV[i]), tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  if slot and modified <= now + resolution then
    redis.call('HSET', P .. 'lastmod', slot, ARGV[i + 1] .. ' ' .. ARGV[i + 2] .. ' ' .. string.format('%.6f', now))
    noted = noted + 1
  end
end
return noted
