-- Takes the next turn of hosts for fetches that are no dispatch (redirects, retries); a host then waits to be told of their start.
-- ARGV[1]  "<dddd": least us between two starts to a host, us for which it waits, what the time should be and within how many us the
--          server's clock is believed, as in dispatch;  then a host of each fetch
-- Returns  per fetch the us until its turn, or -1: the host waits for another start, ask again; and until when its start is awaited (us). A
--          turn that is further off than anybody waits for, and than two pauses, is told, and not taken. O(1) a fetch; one whose reply is lost runs out.
local pause, awaited, expected, within = up('<dddd', ARGV[1])
local now, result = (clock(read_state(), expected, within)), {}
for i, number in ipairs(host_numbers({unpack(ARGV, 2)})) do
  local key = pk('<I4', number)
  local free, turn, waits = up(TURNS, (call('HGET', P .. 'opens', key) or NONE) .. NONE)
  local at, k = max(now, free), 2 * i - 1
  result[k], result[k + 1] = waits > now and -1 or at - now, floor(at + awaited)
  if waits <= now and at - now <= max(${LONGEST_TURN} * 1e6, 2 * pause) then
    call('HSET', P .. 'opens', key, pk(TURNS, at + pause, max(turn, at + pause), result[k + 1]))
  end
end
return result
