-- KEYS account holds lives entries ids usage; ARGV time id micros rest day names quantities
local keys = { account = KEYS[1], holds = KEYS[2], lives = KEYS[3], entries = KEYS[4], ids = KEYS[5] }
local at, id, micros = clock(ARGV[1]), ARGV[2], tonumber(ARGV[3])

local open = redis.call("HGET", keys.holds, id)
local before = redis.call("HGET", keys.ids, "charge " .. id)
if before then
  if open then finish(keys, id, tonumber(open)) end
  local charged, shortfall = string.match(before, "^%S+ (%S+) (%S+)$")
  return { charged, shortfall, "repeated" }
end

local available = amount(redis.call("HGET", keys.account, "available")) + amount(open or "0")
local charged = math.min(micros, available)
append(keys, "charge", id, at, 0 - charged, micros - charged, ARGV[4], "names", ARGV[6], "quantities", ARGV[7])
if open then finish(keys, id, tonumber(open)) end
move(keys.account, "available", "spent", charged)
addUsage(KEYS[6], '["' .. ARGV[5] .. '",' .. ARGV[6], sumsOf(1, charged, ARGV[7]))
return { whole(charged), whole(micros - charged), "" }
