-- Shared by all scripts, which stand below it. A script checks everything before its first write: there is no rollback.

-- Unix milliseconds of the server, so that replicas of the gateway agree; a test gives its own.
local function clock(given)
  if given ~= "" then return tonumber(given) end
  local time = redis.call("TIME")
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- Every micro up to 2^53; tostring would round to 14 digits. Negate by `0 - number`: minus nothing is written "-0".
local function whole(number)
  return string.format("%.0f", number)
end

local function amount(text)
  return tonumber(text or "0")
end

-- One ledger row. The stream refuses an id that is not above its last one, so this is the first write of a script.
local function append(keys, kind, id, at, micros, shortfall, rest, ...)
  local sequence = amount(redis.call("HGET", keys.account, "sequence")) + 1
  local row = '{"kind":"' .. kind .. '","at":' .. whole(at) .. ',"micros":' .. whole(micros)
    .. ',"shortfall":' .. whole(shortfall) .. rest .. "}"
  redis.call("XADD", keys.entries, whole(sequence) .. "-0", "id", id, "row", row, ...)
  redis.call("HSET", keys.account, "sequence", whole(sequence))
  redis.call("HSET", keys.ids, kind .. " " .. id, whole(sequence) .. " " .. whole(math.abs(micros)) .. " " .. whole(shortfall))
end

local function move(account, from, to, micros)
  if micros == 0 then return end
  redis.call("HINCRBY", account, from, whole(-micros))
  redis.call("HINCRBY", account, to, whole(micros))
end

local function finish(keys, id, held)
  redis.call("HDEL", keys.holds, id)
  redis.call("ZREM", keys.lives, id)
  move(keys.account, "held", "available", held)
end

-- Adds to one field of a month of usage: requests, micros, input, output, cached, seconds, images.
local function addUsage(usage, field, added)
  local sums = {}
  for text in string.gmatch(redis.call("HGET", usage, field) or "0 0 0 0 0 0 0", "%S+") do
    sums[#sums + 1] = string.format("%.17g", tonumber(text) + added[#sums + 1])
  end
  redis.call("HSET", usage, field, table.concat(sums, " "))
end

local function sumsOf(sign, micros, text)
  local sums = { sign, sign * micros }
  for quantity in string.gmatch(text, "%S+") do sums[#sums + 1] = sign * tonumber(quantity) end
  return sums
end

-- The clock was set back, or a slower server took over: shift all hits with it, or the window would stay closed until then.
local function setBack(window, byMs, span)
  local times = redis.call("LRANGE", window, 0, -1)
  redis.call("DEL", window)
  for _, time in ipairs(times) do redis.call("RPUSH", window, whole(tonumber(time) - byMs)) end
  redis.call("PEXPIRE", window, whole(span))
end

-- A list with the times of the last accepted hits. Returns allowed, remaining, retryAfterMs, resetMs.
local function hit(window, at, limit, span)
  local last = tonumber(redis.call("LINDEX", window, -1) or at)
  if last > at then
    setBack(window, last - at, span)
    last = at
  end
  local oldest = redis.call("LINDEX", window, 0)
  while oldest and tonumber(oldest) + span <= at do
    redis.call("LPOP", window)
    oldest = redis.call("LINDEX", window, 0)
  end
  local count = redis.call("LLEN", window)
  if count < limit then
    redis.call("RPUSH", window, whole(at))
    redis.call("PEXPIRE", window, whole(span))
    return { 1, limit - count - 1, 0, span }
  end
  local first = tonumber(redis.call("LINDEX", window, count - limit) or at)
  return { 0, 0, first + span - at, last + span - at }
end
