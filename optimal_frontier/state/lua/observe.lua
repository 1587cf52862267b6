-- Ends leases: records what a fetch showed and sets the page's next deadline.
-- ARGV  horizon (s: deadlines further away are left to the planner), policy (periodic, poisson), then per lease 17 values: slot, token,
--       outcome (ok, failed, refused, gone, released), bit (-1: none), shape, time, age (s since the response came),
--       content (20 bytes, or empty), rate for a page that has no plan (1/s; 0: none), lateness (s, or "-"), what became of the page's own
--       word about its last change (kind:verdict:use, separated by blanks) and of its validators (validators=verdict=evidence), watch (16 bytes, or empty),
--       what update times have taught (as in P.timed, or empty), bursts (16 bytes, or empty), memory (msgpack; empty: nothing is remembered; -: leave it),
--       counters to add to (name:by, separated by blanks), again (1: it is due as soon as its gap is over; 0)
-- Returns  per lease 1 if it was counted, 0 if the lease was no longer valid. O(log n) a lease; idempotent by token.
local now, live = clock(), read_live()
local horizon, is_memoryless = tonumber(ARGV[1]), ARGV[2] == 'poisson'
local stats = {}
local function count(name, by) stats[name] = (stats[name] or 0) + (by or 1) end
-- Python reference: estimation/trust.py
local KEPT = 0.975
local function note_word(host, kind, verdict, use, changed)
  if verdict ~= 'none' then
    local field = host .. ':' .. kind
    local counts = {0, 0, 0, 0}
    local at = 0
    for text in string.gmatch(redis.call('HGET', P .. 'trust', field) or '', '%S+') do
      at = at + 1
      counts[at] = tonumber(text)
    end
    local total = changed and 3 or 1
    counts[total] = counts[total] * KEPT + 1
    counts[total + 1] = counts[total + 1] * KEPT + (verdict == 'lies' and 1 or 0)
    redis.call('HSET', P .. 'trust', field, string.format('%.9g %.9g %.9g %.9g', unpack(counts)))
  end
  if use == 'used' then count('ages') elseif use == 'distrusted' then count('ages_distrusted') end
end
-- Python reference: estimation/validators.py
local LEAST_SCORE, MOST_SCORE = -2, 8
local function note_validators(host, verdict, evidence)
  local field = host .. ':validators'
  local score, told, checks, lies = string.match(redis.call('HGET', P .. 'trust', field) or '0 0 0 0', '^(%S+) (%S+) (%S+) (%S+)$')
  score = math.min(MOST_SCORE, math.max(LEAST_SCORE, score + evidence))
  if verdict == 'told' then told = told + 1 else checks = checks + 1 end
  if verdict == 'lies' then
    lies = lies + 1
    count('validator_lies')
  end
  redis.call('HSET', P .. 'trust', field, string.format('%.9g %.9g %.9g %.9g', score, told, checks, lies))
end
-- The URL in a record, without the rest of it (which may hold what cmsgpack does not know): a map whose first key is "url".
local function url_of(record)
  if string.sub(record, 2, 5) ~= '\163url' then return '' end
  local head, start, size = string.byte(record, 6), 7, 0
  if head >= 160 and head < 192 then size = head - 160
  elseif head == 217 then start, size = 8, string.byte(record, 7)
  elseif head == 218 then start, size = 9, (struct.unpack('>I2', record, 7))
  elseif head == 219 then start, size = 11, (struct.unpack('>I4', record, 7)) end
  return string.sub(record, start, start + size - 1)
end
local function hex(content)
  return (string.gsub(string.sub(content, 5), '.', function(c) return string.format('%02x', string.byte(c)) end))
end
local function tell_change(slot, at, before, after)
  local record = redis.call('HGET', P .. 'records', slot) or ''
  redis.call('XADD', P .. 'changes', 'MAXLEN', '~', 10000, '*', 'slot', slot, 'time', string.format('%.3f', at), 'url', url_of(record),
    'previous', hex(before), 'fingerprint', hex(#after > 0 and after or before), 'record', record)
end
-- Failures in a row (an hour or two of them) after which a page that was put forward is one as any other again: it would take its place in
-- the window of its announcer for good.
local GIVEN_UP = 12
local result = {}
for i = 3, #ARGV, 17 do
  local slot, token, outcome, bit_ = ARGV[i], ARGV[i + 1], ARGV[i + 2], tonumber(ARGV[i + 3])
  local text = redis.call('HGET', P .. 'leases', slot)
  local lease = text and parse_lease(text)
  if not lease or lease.token ~= token then
    count('observations_refused')
    result[#result + 1] = 0
  elseif outcome == 'released' then
    requeue(slot, lease)
    count('leases_released')
    result[#result + 1] = 1
  else
    drop_lease(slot, lease.owner)
    for name, by in string.gmatch(ARGV[i + 15], '([%w_]+):(%d+)') do count(name, tonumber(by)) end
    local index = tonumber(slot)
    local p, s, q = read_page(index), parse_seen(read_raw('seen', index)), parse_plan(read_raw('plan', index))
    if s.attempts == 0 then count('pending', -1) end
    if p.state == TRANSIENT then
      free_slot(index, p)
    elseif p.state == ONCE then
      s.attempts = s.attempts + 1
      write_seen(index, s)
      p.state = DONE
      write_page(index, p)
      redis.call('HDEL', P .. 'records', slot)
    else
      local never = s.visits == 0
      local planned = q.base_time > 0
      if not planned then q.rate = tonumber(ARGV[i + 8]) end
      -- A visit takes 1 off what the page had earned when it was handed out, within bounds; what it earns since then stays.
      local mark = announcement_of(slot)
      -- What a source lent it is no credit of its own.
      local had = mark and mark.at <= lease.at and mark.credit + q.rate * (lease.at - mark.at) or credit(s, q, lease.at)
      if had > 1.5 * FORCED then had = had - CHECKED end
      local left = math.max(-1, math.min(0.5, had - 1))
      s.carry = never and 0 or left + q.rate * (now - lease.at)
      local own = s.carry
      s.settled = now
      s.last_attempt = lease.at
      -- It may have been seen under another name before its first attempt.
      s.attempts = math.max(s.attempts, s.visits) + 1
      -- What is still to be earned is a draw of mean 1, not 1; a pinned page stays evenly spaced.
      if is_memoryless and p.min_rate < p.max_rate then
        s.carry = s.carry + 1 - memoryless_wait(index, p.generation, s.attempts)
      end
      if outcome == 'ok' then
        s.shape, s.time = tonumber(ARGV[i + 4]), tonumber(ARGV[i + 5])
        s.last_seen = now - tonumber(ARGV[i + 6])
        if s.failures > 0 then redis.call('HDEL', P .. 'failed', slot) end
        s.visits, s.failures, s.gone = s.visits + 1, 0, 0
        note_health(tostring(p.host), 1, 0)
        if never then count('fetched') end
        if bit_ >= 0 then
          s.observations, s.changes = s.observations + 1, s.changes + bit_
          s.bits = (s.bits * 2 + bit_) % 4294967296
          count('observations')
          count('changes', bit_)
          if bit_ == 1 then
            tell_change(slot, s.last_seen, read_raw('content', index), ARGV[i + 7])
          end
        end
        for kind, verdict, use in string.gmatch(ARGV[i + 10], '(%a+):(%a+):(%a+)') do
          note_word(tostring(p.host), kind, verdict, use, bit_ == 1)
        end
        local verdict, evidence = string.match(ARGV[i + 10], 'validators=(%a+)=(%S+)')
        if verdict then note_validators(tostring(p.host), verdict, tonumber(evidence)) end
        if #ARGV[i + 11] > 0 then
          if struct.unpack('<I4', ARGV[i + 11], 13) > struct.unpack('<I4', read_raw('watch', index), 13) then count('relearned') end
          write_raw('watch', index, ARGV[i + 11])
        end
        if #ARGV[i + 13] > 0 then write_raw('bursts', index, ARGV[i + 13]) end
        if #ARGV[i + 12] > 0 then
          -- Under another timetable by now it says nothing.
          local _, raw = timetable_of(slot)
          if raw and string.sub(raw, 1, 4) == string.sub(ARGV[i + 12], 1, 4) then redis.call('HSET', P .. 'timed', slot, ARGV[i + 12]) end
        end
        if #ARGV[i + 7] > 0 then write_raw('content', index, ARGV[i + 7]) end
        if ARGV[i + 14] == '' then redis.call('HDEL', P .. 'memory', slot) end
        if #ARGV[i + 14] > 1 then redis.call('HSET', P .. 'memory', slot, ARGV[i + 14]) end
        count('visits')
      else
        s.failures = s.failures + 1
        if outcome == 'refused' then s.failures = math.max(s.failures, 12) end
        if outcome == 'gone' then judge_gone(index, p, s, now, count) else s.gone = 0 end
        local counted = ARGV[i + 15]
        local cause = string.match(counted, 'failures_(%w+):') or string.match(counted, '(blocked)_pages:') or outcome
        redis.call('HSET', P .. 'failed', slot, cause)
        count('failures')
        count('failures_' .. outcome)
      end
      if mark then
        local was_told = mark.at <= lease.at or (bit_ == 1 and s.last_seen > mark.seen_by)
        if (outcome == 'failed' and s.failures < GIVEN_UP) or (outcome == 'ok' and not was_told) then
          -- It was in flight already, or failed: the visit is still owed.
          mark_announced(slot, now, s.carry, mark.seen_by, mark.unsure, mark.name)
          lend_credit(slot, s, live, now)
        else
          settle_announcement(slot, outcome == 'ok' and bit_ or -1)
        end
      end
      if ARGV[i + 16] == '1' then
        -- A page with one rate only would come too late after a check that it had to pay.
        s.carry, s.settled = p.min_rate < p.max_rate and CHECKED + own or FORCED, now
      end
      write_seen(index, s)
      if p.state == ACTIVE then
        local _, due = deadline_of(index, p, s, q, live, now)
        if due <= now + horizon or s.visits == 0 or s.gone > 0 then
          if due < INFINITE then redis.call('ZADD', P .. 'due:' .. p.host, number(due), slot) end
        end
        sync_host(tostring(p.host))
      end
      if ARGV[i + 9] ~= '-' then
        redis.call('LPUSH', P .. 'lateness', ARGV[i + 9])
        redis.call('LTRIM', P .. 'lateness', 0, 999)
      end
    end
    result[#result + 1] = 1
  end
end
for name, by in pairs(stats) do if by ~= 0 then redis.call('HINCRBY', P .. 'stats', name, by) end end
return result
