-- Notes when fetches began, or that they never did: a host stays shut for its pause from there.
-- ARGV[1]  "<d" least us between two starts; then per fetch its host, and "<dd" when it began (us; 0: never), until when its turn awaits it
-- Returns  1. A turn that came after that one is left alone. O(1) a fetch; idempotent.
local pause = up('<d', ARGV[1])
for i = 2, #ARGV, 2 do
  local host = call('HGET', P .. 'hosts', ARGV[i])
  local key, began, named = host and pk('<I4', host), up('<dd', ARGV[i + 1])
  local kept = host and call('HGET', P .. 'opens', key)
  if kept then
    local free, turn, waits = up(TURNS, kept .. NONE)
    if began > 0 then free = math.max(free, began + pause) end
    call('HSET', P .. 'opens', key, pk(TURNS, free, turn, math.abs(waits - named) > 2 and waits or 0))
  end
end
return 1
