-- Keeps hosts shut: for a pause from where fetches began, or from now on, as they ask for it. One that is shut for longer stays so.
-- ARGV[1]  "<ddB" what the time should be, as in dispatch, and whether hosts ask (1);  then per host its name, and "<ddd": for how long
--          (us), and of a fetch when it began (us; 0: never), until when its turn awaits it (us)
-- Returns  how many of those that ask are known. A turn that came after that one is left alone. O(1) a host; idempotent.
local holds, expected, within, asks = 0, up('<ddB', ARGV[1])
for i = 2, #ARGV, 2 do
  local host, pause, since, named = call('HGET', P .. 'hosts', ARGV[i]), up('<ddd', ARGV[i + 1])
  local key = host and pk('<I4', host)
  local kept = host and (call('HGET', P .. 'opens', key) or asks == 1 and NONE)
  if kept then
    local free, turn, waits = up(TURNS, kept .. NONE)
    if asks == 1 then since, holds = (clock(read_state(), expected, within)), holds + 1
    elseif math.abs(waits - named) <= 2 then waits = 0 end
    call('HSET', P .. 'opens', key, pk(TURNS, max(free, since + pause), turn, waits))
  end
end
store_counts({host_holds = holds})
return holds
