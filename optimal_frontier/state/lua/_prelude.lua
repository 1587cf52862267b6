-- Shared by every script: put in front of it by scripts.py, so that each layout and formula stands once.
--
-- KEYS[1]  prefix of the partition, "NAMESPACE:{0}:"; every key below carries its hash tag.
--
-- P.meta            HASH   schema, spider, clock (s), slots, arrivals, lease_seq, fence, epoch
-- P.ids             HASH   request fingerprint (20 bytes), of pages and of their aliases -> slot
-- P.aliases         HASH   fingerprint by which a page was known before it moved -> the one it has now, and the URL that it had
-- P.aliased:S       LIST   aliases of the page at slot S, oldest first
-- P.records         HASH   slot -> msgpack of what a fetch needs
-- P.stated          STRING a bit a slot: 1 where a request or an import stated the page's importance, which RULES leave alone then
-- P.memory          HASH   slot -> msgpack of what the last responses left for the next fetch: state/memory.py
-- P.failed          HASH   slot -> why its last attempt failed, of pages that fail
-- P.health          HASH   H -> faded counts "pages seen, pages found gone" of hosts with gone pages: _gone.lua
-- P.flagged         ZSET   contents that are no page's own: host, blank, fingerprint in hexadecimal -> when that was found out (s)
-- P.retired:H       LIST   slots of host H that were retired last, newest first
-- P.free            LIST   slots given back by forget and by requests that are not pages
-- P.page:C          STRING 48 bytes a slot, chunk C: importance, min_rate, max_rate (1/s), gap (s), host, generation, state, pattern
-- P.seen:C          STRING 76 bytes a slot: last_attempt, last_seen, shape, time (s), carry, settled (s), visits, observations,
--                          changes, bits (last 32, newest lowest), failures, gone, attempts
-- P.plan:C          STRING 24 bytes a slot: rate (1/s), base_time (s), base_credit; base_time 0: not planned yet
-- P.content:C       STRING 20 bytes a slot: tag of the fingerprint settings (0: none), fingerprint
-- P.committed:C     STRING 20 bytes a slot: shape, time (s) of the posterior that explore-then-commit goes by (0: none), generation
-- P.index:C         STRING 32 bytes a slot: weight, change_rate (1/s), least_rate, most_rate (1/s; 0: not planned by price); DISPATCH index only
-- P.price           HASH   there while pages are dispatched by price: price, at (s), objective, look (s), highest (since the last plan),
--                          and of hosts at their limit h:H -> price of H
-- P.patterns        HASH   "H pattern" -> G (number of the pattern, from 1);  P.patterns:hosts HASH H -> how many patterns it has
-- P.hosts:pages     HASH   H -> pages, and requests that are fetched once, that are known;  P.patterns:pages HASH G -> pages of the pattern
-- P.prior:C         STRING 24 bytes a pattern, chunk C of the numbers G: shape, time (s) of the prior of its pages without a bit (0: the
--                          default), siblings that taught it
-- P.due:H           ZSET   slot -> deadline (s), of host H; by price, when to look at it if that is sooner
-- P.first:H         ZSET   first visits of host H: score -priority, member = 1/importance, arrival (big-endian, so that
--                          equal scores come by importance, then arrival), slot
-- P.hosts           HASH   host -> H;  P.hosts:names HASH H -> host
-- P.hosts:due       ZSET   H -> head of P.due:H, of hosts that are open
-- P.hosts:first     ZSET   head of P.first:H followed by H;  P.hosts:firsthead HASH H -> that member
-- P.hosts:blocked   ZSET   H -> when it opens (s)
-- P.hosts:opened    HASH   H -> when it last opened (s), until a page of it is visited by price
-- P.watch:C         STRING 16 bytes a slot: shape, time (s) of the recent posterior (0: none), evidence of changed habits (as 32-bit
--                          floats), how often they were learned anew
-- P.timetables      HASH   "period time probability time probability ..." (s) -> N;  P.timetables:texts HASH N -> that
-- P.timed           HASH   slot -> N of the page's timetable (I4), and per time the Beta posterior of its probability (two doubles each)
-- P.bursts:C        STRING 16 bytes a slot: last surprise, score, variance, spread of the test for bursts (32-bit floats)
-- P.timed:due       ZSET   slot -> deadline (s) of pages that go by update times: they go before others. A page that is not in P.due:H
--                          as well is passed over, and dropped at its deadline
-- P.bought:C        STRING 8 bytes a slot: sum of 2^j over the times of its timetable that are bought
-- P.trust           HASH   H:header, H:sitemap -> faded counts of what checks of the host's word found: "unchanged moved changed wrong"
-- P.lastmod         HASH   slot -> what a sitemap said: "last change (s), resolution (s), when it said so (s)"
-- P.announcers      HASH   "host kind" of a source -> what its announcements were worth: "right wrong score silenced waiting window passed_over"
-- P.announced       HASH   slot that a source put forward -> "at (s) credit (then) seen_by (s: by then its
--                          change can be seen) unsure (1: it may have been seen already) host kind"
-- P.leases          HASH   slot -> "token owner dispatched_at deadline first"
-- P.leases:expiry   ZSET   slot -> when it expires (s);  P.owner:O SET slots;  P.owners ZSET O -> last sign of life (s)
-- P.bucket          HASH   tokens, at (s), discovery
-- P.stats           HASH   counters
-- P.lateness        LIST   the last 1,000, seconds to the start of the download
-- P.changes         STREAM pages that changed, about 10,000;  P.published HASH  the last plan
local P = KEYS[1]
local CHUNK = 4096
local FORMAT = {page = '<ddddI4I4I4I4', seen = '<ddddddI4I4I4I4I4I4I4', plan = '<ddd', index = '<dddd', content = '<I4c16', committed = '<ddI4',
  prior = '<ddd', watch = '<fffI4', bought = '<d', bursts = '<ffff'}
local WIDTH = {page = 48, seen = 76, plan = 24, index = 32, content = 20, committed = 20, prior = 24, watch = 16, bought = 8, bursts = 16}
local ACTIVE, ONCE, TRANSIENT, RETIRED, DONE = 1, 2, 3, 4, 5
local OWNER_SILENCE_S = 15
local REQUEUE_LIMIT = 256
local INFINITE = 1e300
-- Credit that no page earns: somebody wants it now.
local FORCED = 1e12
-- The same of a page that is to be checked, beside the credit that it has: the check is paid from that.
local CHECKED = 2 * FORCED
-- Under a budget without limit, added to the deadlines in P.due:H of pages that wait for an update time, so that they do not stand
-- before what may be anticipated; they come by P.timed:due, or when the next plan has queued them anew.
local LATER = 1e13

local function number(value) return string.format('%.17g', value) end

-- Never runs backwards, whatever the server's clock does.
local function clock()
  local t = redis.call('TIME')
  local now = tonumber(t[1]) + tonumber(t[2]) / 1e6
  local last = tonumber(redis.call('HGET', P .. 'meta', 'clock') or '0')
  if now < last then return last end
  redis.call('HSET', P .. 'meta', 'clock', string.format('%.6f', now))
  return now
end

local function place(kind, slot)
  return P .. kind .. ':' .. string.format('%d', math.floor(slot / CHUNK)), (slot % CHUNK) * WIDTH[kind]
end

local function read_raw(kind, slot)
  local key, offset = place(kind, slot)
  local raw = redis.call('GETRANGE', key, offset, offset + WIDTH[kind] - 1)
  if #raw < WIDTH[kind] then raw = raw .. string.rep('\0', WIDTH[kind] - #raw) end
  return raw
end

local function write_raw(kind, slot, raw)
  local key, offset = place(kind, slot)
  redis.call('SETRANGE', key, offset, raw)
end

local function read_page(slot)
  local p = {slot = slot}
  p.importance, p.min_rate, p.max_rate, p.gap, p.host, p.generation, p.state, p.pattern =
    struct.unpack(FORMAT.page, read_raw('page', slot))
  return p
end

local function write_page(slot, p)
  write_raw('page', slot, struct.pack(FORMAT.page, p.importance, p.min_rate, p.max_rate, p.gap, p.host, p.generation, p.state,
    p.pattern))
end

local function parse_seen(raw)
  local s = {}
  s.last_attempt, s.last_seen, s.shape, s.time, s.carry, s.settled, s.visits, s.observations, s.changes, s.bits, s.failures, s.gone,
    s.attempts = struct.unpack(FORMAT.seen, raw)
  return s
end

local function write_seen(slot, s)
  write_raw('seen', slot, struct.pack(FORMAT.seen, s.last_attempt, s.last_seen, s.shape, s.time, s.carry, s.settled, s.visits,
    s.observations, s.changes, s.bits, s.failures, s.gone, s.attempts))
end

local function parse_plan(raw)
  local q = {}
  q.rate, q.base_time, q.base_credit = struct.unpack(FORMAT.plan, raw)
  return q
end

-- Python reference: scheduling/credit.py
local function backoff(failures, slot)
  local jitter = (slot * 0.6180339887498949 + failures * 0.7548776662466927) % 1
  return math.min(86400, 2 ^ math.min(failures, 17)) * (1 - 0.5 * jitter)
end

-- Least seconds from one attempt to the next (without a plan: q nil). A page that is gone is looked at again neither at once nor much
-- later.
local GONE_SHARE, LONGEST_GONE_S = 0.1, 3600
local function least_wait(p, s, q)
  if s.failures == 0 then return p.gap end
  local wait = math.max(p.gap, backoff(s.failures, p.slot))
  if s.gone > 0 and q and q.rate > 0 then wait = math.max(wait, math.min(LONGEST_GONE_S, GONE_SHARE / q.rate)) end
  return wait
end

local function credit(s, q, t)
  if q.base_time > s.settled then return q.base_credit + q.rate * (t - q.base_time) end
  return s.carry + q.rate * (t - s.settled)
end

local function memoryless_wait(slot, generation, attempts)
  local digest = redis.sha1hex(string.format('%d %d %d', slot, generation, attempts))
  return -math.log((tonumber(string.sub(digest, 1, 13), 16) + 0.5) / 2 ^ 52)
end

local function deadline(p, s, q)
  if s.gone > 0 or s.visits == 0 then return s.last_attempt + least_wait(p, s, q) end
  local from, have = s.settled, s.carry
  if q.base_time > s.settled then from, have = q.base_time, q.base_credit end
  if have < 1 and q.rate <= 0 then return INFINITE end
  local due = q.rate > 0 and from + (1 - have) / q.rate or from
  return math.max(due, s.last_attempt + least_wait(p, s, q))
end

-- Python reference: scheduling/update_times.py
local SLACK_S, QUIET_SHARE = 0.1, 0.1

local function parse_timetable(text)
  local t = {times = {}, quiet = {}}
  local at = 0
  for value in string.gmatch(text, '%S+') do
    if at == 0 then t.period = tonumber(value) elseif at % 2 == 1 then t.times[#t.times + 1] = tonumber(value) end
    at = at + 1
  end
  for j, time in ipairs(t.times) do
    local before = j > 1 and t.times[j - 1] or t.times[#t.times] - t.period
    t.quiet[j] = math.min(QUIET_SHARE * t.period, (time - before) / 2)
  end
  return t
end

-- The first update time later than `after` among those bought (a mask; false: all), and which one it is.
local function next_update(t, after, bought)
  local start = math.floor(after / t.period) * t.period
  for turn = 0, 1 do
    for j, time in ipairs(t.times) do
      local at = turn == 0 and start + time or start + t.period + time
      if at > after and (not bought or math.floor(bought / 2 ^ (j - 1)) % 2 == 1) then return at, j end
    end
  end
  return INFINITE, 1
end

local function visit_deadline(t, bought, seen, earliest, longest, now)
  local due = next_update(t, seen, bought)
  if longest < INFINITE then due = math.min(due, (next_update(t, seen + longest, false))) end
  if due >= INFINITE then return INFINITE end
  due = math.max(due + SLACK_S, earliest)
  local at = math.max(due, now)
  local coming, which = next_update(t, at, false)
  if at > coming - t.quiet[which] then return coming + SLACK_S end
  return due
end

-- The timetable of a page; false for a page without update times.
local has_timed, timetables = nil, {}
local function timetable_of(slot)
  if has_timed == nil then has_timed = redis.call('EXISTS', P .. 'timed') == 1 end
  local raw = has_timed and redis.call('HGET', P .. 'timed', slot)
  if not raw then return false end
  local number = string.format('%d', (struct.unpack('<I4', raw)))
  if not timetables[number] then
    local text = redis.call('HGET', P .. 'timetables:texts', number)
    if not text then return false end
    timetables[number] = parse_timetable(text)
    timetables[number].text = text
  end
  return timetables[number], raw
end

local function set_timetable(slot, text)
  local number = text ~= '' and redis.call('HGET', P .. 'timetables', text)
  if text ~= '' and not number then
    number = redis.call('HLEN', P .. 'timetables') + 1
    redis.call('HSET', P .. 'timetables', text, number)
    redis.call('HSET', P .. 'timetables:texts', number, text)
  end
  local raw = redis.call('HGET', P .. 'timed', slot)
  if raw and not number then redis.call('HDEL', P .. 'timed', slot) end
  -- What was learned of a timetable stays while the page keeps it.
  if number and not (raw and struct.unpack('<I4', raw) == tonumber(number)) then
    redis.call('HSET', P .. 'timed', slot, struct.pack('<I4', tonumber(number)))
  end
  has_timed = nil
end

-- Since when the page was not seen: what was published until then it has.
local function covered(s) return s.failures == 0 and s.last_attempt or s.last_seen end

-- By its timetable goes a page that was fetched, unless it was gone or somebody wants it now.
local function goes_by_times(p, s, q)
  local have = q.base_time > s.settled and q.base_credit or s.carry
  return s.visits > 0 and s.gone == 0 and have < FORCED
end

local function deadline_by_times(slot, t, p, s, q, now)
  local bought = q.base_time > 0 and struct.unpack(FORMAT.bought, read_raw('bought', slot))
  local earliest = s.last_attempt + least_wait(p, s, q)
  return visit_deadline(t, bought, covered(s), earliest, p.min_rate > 0 and 1 / p.min_rate or INFINITE, now)
end

-- What pages are dispatched by while DISPATCH is index; false while it is not.
local function read_live()
  local f = redis.call('HMGET', P .. 'price', 'price', 'objective', 'look', 'highest')
  if not f[1] then return false end
  return {price = tonumber(f[1]), is_freshness = f[2] ~= 'changes', look = tonumber(f[3]), highest = tonumber(f[4]), hosts = {}}
end

local function read_index(slot)
  local x = {}
  x.weight, x.change_rate, x.least_rate, x.most_rate = struct.unpack(FORMAT.index, read_raw('index', slot))
  return x
end

-- The price of a visit to a host: its own where it is at its limit.
local function price_at(live, host)
  if not live.hosts[host] then live.hosts[host] = tonumber(redis.call('HGET', P .. 'price', 'h:' .. host) or '0') end
  return math.max(live.price, live.hosts[host])
end

-- Python reference: scheduling/index.py
local function value_share(r)
  if r < 0.03 then
    r = math.max(r, 0)
    return r * r * (1 / 2 - r * (1 / 3 - r * (1 / 8 - r * (1 / 30 - r * (1 / 144 - r * (1 / 840 - r * (1 / 5760 - r / 45360)))))))
  end
  if r > 700 then return 1 end
  local decay = math.exp(-r)
  return 1 - decay - r * decay
end

-- Its inverse, by Newton's method from close by.
local function changes_until(q)
  if q < 1e-8 then return math.sqrt(2 * q) + 2 * q / 3 end
  local r = q < 0.5 and math.sqrt(2 * q) + 2 * q / 3 or 1 - math.log(1 - q) + math.log(1 - math.log(1 - q))
  for _ = 1, 60 do
    local step = (value_share(r) - q) / (r * math.exp(-r))
    r = r - step
    if math.abs(step) <= 1e-12 * r then break end
  end
  return r
end

local function visit_bound(importance, change_rate, is_freshness)
  if change_rate <= 0 then return 0 end
  return is_freshness and importance / change_rate or importance
end

-- By price go pages that a plan has seen, but for those with one rate only, those that failed or were gone, and those that
-- somebody wants now.
local function goes_by_price(p, s, q, x)
  local have = q.base_time > s.settled and q.base_credit or s.carry
  local is_well = s.visits > 0 and s.gone == 0 and s.failures == 0
  return is_well and x.most_rate > 0 and x.least_rate < x.most_rate and p.min_rate < p.max_rate and have < FORCED
end

-- When a page may be visited at all.
local function earliest(p, s, q) return s.last_attempt + least_wait(p, s, q) end

local function deadline_by_price(p, s, x, price, is_freshness)
  local bound, wait = visit_bound(x.weight, x.change_rate, is_freshness), INFINITE
  if bound > price then wait = price > 0 and changes_until(price / bound) / x.change_rate or 0 end
  if x.least_rate > 0 then wait = math.min(wait, 1 / x.least_rate) end
  return math.max(s.last_seen + math.max(wait, 1 / x.most_rate), earliest(p, s))
end

-- The deadline of a page, and the time at which to queue it.
local function deadline_of(slot, p, s, q, live, now)
  local t = timetable_of(slot)
  if t and goes_by_times(p, s, q) then
    local due = deadline_by_times(slot, t, p, s, q, 0)
    if due < INFINITE then redis.call('ZADD', P .. 'timed:due', number(due), slot) end
    return due, due
  end
  local x = live and read_index(slot)
  if not x or not goes_by_price(p, s, q, x) then
    local due = deadline(p, s, q)
    return due, due
  end
  local due = deadline_by_price(p, s, x, price_at(live, p.host), live.is_freshness)
  return due, math.min(due, now + live.look)
end

-- The two sets of host heads follow the queues of the host; a blocked host is in neither.
local function sync_host(host)
  local due, first
  if not redis.call('ZSCORE', P .. 'hosts:blocked', host) then
    due = redis.call('ZRANGE', P .. 'due:' .. host, 0, 0, 'WITHSCORES')
    first = redis.call('ZRANGE', P .. 'first:' .. host, 0, 0, 'WITHSCORES')
  end
  if due and due[1] then redis.call('ZADD', P .. 'hosts:due', due[2], host) else redis.call('ZREM', P .. 'hosts:due', host) end
  local old = redis.call('HGET', P .. 'hosts:firsthead', host)
  local new = first and first[1]
  if old and old ~= new then
    redis.call('ZREM', P .. 'hosts:first', old .. host)
    redis.call('HDEL', P .. 'hosts:firsthead', host)
  end
  if new and old ~= new then
    redis.call('ZADD', P .. 'hosts:first', first[2], new .. host)
    redis.call('HSET', P .. 'hosts:firsthead', host, new)
  end
end

local function hide_host(host)
  redis.call('ZREM', P .. 'hosts:due', host)
  local old = redis.call('HGET', P .. 'hosts:firsthead', host)
  if old then
    redis.call('ZREM', P .. 'hosts:first', old .. host)
    redis.call('HDEL', P .. 'hosts:firsthead', host)
  end
end

local function queue_first(slot, p, priority)
  local arrival = redis.call('HINCRBY', P .. 'meta', 'arrivals', 1)
  local member = struct.pack('>ddI4', 1 / p.importance, arrival, slot)
  redis.call('ZADD', P .. 'first:' .. p.host, -priority, member)
end

local function drop_lease(slot, owner)
  redis.call('HDEL', P .. 'leases', slot)
  redis.call('ZREM', P .. 'leases:expiry', slot)
  redis.call('SREM', P .. 'owner:' .. owner, slot)
end

local function parse_lease(text)
  local token, owner, at, due, first = string.match(text, '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
  return {token = token, owner = owner, at = tonumber(at), due = tonumber(due), first = first}
end

-- Back where it was, nothing counted: its score is the one it had.
local function requeue(slot, lease)
  drop_lease(slot, lease.owner)
  local p = read_page(tonumber(slot))
  if lease.first ~= '-' then
    local member = struct.pack('>ddI4', 1 / p.importance, 0, tonumber(slot))
    redis.call('ZADD', P .. 'first:' .. p.host, lease.first, member)
  elseif p.state == ACTIVE then
    redis.call('ZADD', P .. 'due:' .. p.host, number(lease.due), slot)
  end
  sync_host(tostring(p.host))
end

-- Python reference: estimation/announcers.py
local SILENCED_AT, PROBE_EVERY, FIRST_WINDOW, MOST_WINDOW, WIDER, NARROWER = 8, 32, 32, 1000, 1.25, 0.5

local function read_announcer(name)
  local a = {}
  for value in string.gmatch(redis.call('HGET', P .. 'announcers', name) or '', '%S+') do a[#a + 1] = tonumber(value) end
  return {right = a[1] or 0, wrong = a[2] or 0, score = a[3] or 0, silenced = a[4] == 1, waiting = a[5] or 0, window = a[6] or FIRST_WINDOW,
    passed_over = a[7] or 0}
end

local function write_announcer(name, a)
  redis.call('HSET', P .. 'announcers', name, string.format('%d %d %d %d %d %.9g %d', a.right, a.wrong, a.score, a.silenced and 1 or 0, a.waiting,
    a.window, a.passed_over))
end

local function mark_announced(slot, at, have, seen_by, unsure, name)
  local fields = {string.format('%.6f', at), number(have), number(seen_by), unsure and 1 or 0, name}
  redis.call('HSET', P .. 'announced', slot, table.concat(fields, ' '))
end

-- What put a page forward; nil if nothing did.
local function announcement_of(slot)
  local text = redis.call('HGET', P .. 'announced', slot)
  local at, have, seen_by, unsure, name = string.match(text or '', '^(%S+) (%S+) (%S+) (%d) (.+)$')
  return at and {at = tonumber(at), credit = tonumber(have), seen_by = tonumber(seen_by), unsure = unsure == '1', name = name}
end

-- The page's visit has come, and a bit (-1: none) says whether the announcer was right. `a` is the announcer `name`, where the caller has it.
local function settle_announcement(slot, bit_, a, name)
  local mark = announcement_of(slot)
  if not mark then return end
  redis.call('HDEL', P .. 'announced', slot)
  local own = mark.name == name and a or read_announcer(mark.name)
  own.waiting = math.max(0, own.waiting - 1)
  if bit_ == 1 or (bit_ == 0 and not mark.unsure) then
    local was_right = bit_ == 1
    if was_right then own.right, own.score = own.right + 1, math.max(0, own.score - 1)
    else own.wrong, own.score = own.wrong + 1, math.min(SILENCED_AT, own.score + 1) end
    own.silenced = own.score == SILENCED_AT or own.silenced and own.score > 0
    own.window = math.min(MOST_WINDOW, math.max(FIRST_WINDOW, own.window * (was_right and WIDER or NARROWER)))
    redis.call('HINCRBY', P .. 'stats', was_right and 'announcements_right' or 'announcements_wrong', 1)
  end
  if own ~= a then write_announcer(mark.name, own) end
end

-- A page that is put forward has what a visit costs. By price, or by update times, nothing else tells it from one that has waited for long.
local function lend_credit(slot, s, live, now)
  s.carry, s.settled = (live or timetable_of(slot)) and FORCED or 1, now
end

-- What caps on the pages of a host and of a pattern look at; what is forgotten after one fetch is not in it.
local function count_kept(p, by)
  if p.state == TRANSIENT or p.state == 0 then return end
  redis.call('HINCRBY', P .. 'hosts:pages', p.host, by)
  if p.pattern > 0 then redis.call('HINCRBY', P .. 'patterns:pages', p.pattern, by) end
end

-- Forgets everything of a slot but its generation, and gives it back.
local function free_slot(slot, p)
  count_kept(p, -1)
  write_page(slot, {importance = 0, min_rate = 0, max_rate = 0, gap = 0, host = 0, generation = (p.generation + 1) % 4294967296,
    state = 0, pattern = 0})
  for _, kind in ipairs({'seen', 'plan', 'content', 'watch', 'bursts'}) do write_raw(kind, slot, string.rep('\0', WIDTH[kind])) end
  if redis.call('HDEL', P .. 'timed', slot) == 1 then write_raw('bought', slot, string.rep('\0', WIDTH.bought)) end
  if redis.call('EXISTS', P .. 'price') == 1 then write_raw('index', slot, string.rep('\0', WIDTH.index)) end
  redis.call('HDEL', P .. 'records', slot)
  redis.call('HDEL', P .. 'failed', slot)
  redis.call('HDEL', P .. 'memory', slot)
  redis.call('HDEL', P .. 'lastmod', slot)
  settle_announcement(slot, -1)
  redis.call('RPUSH', P .. 'free', slot)
end
