-- Keeps hosts shut: for a pause from where fetches began, or from now on, as they ask for it. One that is shut for longer stays so.
-- ARGV[1]  "<dd" what the time should be, as in dispatch;  then per host its name, and "<ddd": since when (us; 0: its fetch never began),
--          for how long (us), until when the turn of that fetch awaits it (us; 0: it asks, from now on)
-- Returns  how many of those that ask are known. A turn that came after that one is left alone. O(1) a host; idempotent.
local holds = 0
for i = 2, #ARGV, 2 do
  local host, since, pause, named = call('HGET', P .. 'hosts', ARGV[i]), up('<ddd', ARGV[i + 1])
  local key, asks = host and pk('<I4', host), named == 0
  local kept = host and (call('HGET', P .. 'opens', key) or asks and NONE)
  if kept then
    local free, turn, waits = up(TURNS, kept .. NONE)
    if asks then since, holds = (clock(read_state(), up('<dd', ARGV[1]))), holds + 1 end
    if math.abs(waits - named) <= 2 then waits = 0 end
    call('HSET', P .. 'opens', key, pk(TURNS, max(free, since + pause), turn, waits))
  end
end
store_counts({host_holds = holds})
return holds
