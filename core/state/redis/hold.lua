-- KEYS account holds lives ids window; ARGV time id micros least life requests window
local keys = { account = KEYS[1], holds = KEYS[2], lives = KEYS[3], ids = KEYS[4] }
local at, id = clock(ARGV[1]), ARGV[2]

local known = redis.call("HGET", keys.holds, id)
if known then return { "held", known } end
-- A repeat that comes after its own charge sets nothing aside again.
if redis.call("HEXISTS", keys.ids, "charge " .. id) == 1 then return { "held", "0" } end

local available = amount(redis.call("HGET", keys.account, "available"))
if available < tonumber(ARGV[4]) then return { "exhausted" } end
if ARGV[6] ~= "" and hit(KEYS[5], at, tonumber(ARGV[6]), tonumber(ARGV[7]))[1] == 0 then
  return { "reservations_exceeded" }
end

local held = math.min(tonumber(ARGV[3]), available)
redis.call("HSET", keys.holds, id, whole(held))
redis.call("ZADD", keys.lives, whole(at + tonumber(ARGV[5])), id)
move(keys.account, "available", "held", held)
return { "held", whole(held) }
