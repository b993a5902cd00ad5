-- KEYS account holds lives entries ids; ARGV time most. Returns how many lapsed and how many holds are left.
local keys = { account = KEYS[1], holds = KEYS[2], lives = KEYS[3], entries = KEYS[4], ids = KEYS[5] }
local at = clock(ARGV[1])
local overdue = redis.call("ZRANGEBYSCORE", keys.lives, "-inf", whole(at), "LIMIT", 0, ARGV[2])
for _, id in ipairs(overdue) do
  -- A hold that was repeated after it lapsed has its row.
  if redis.call("HEXISTS", keys.ids, "lapse " .. id) == 0 then append(keys, "lapse", id, at, 0, 0, "") end
  finish(keys, id, amount(redis.call("HGET", keys.holds, id)))
end
return { #overdue, redis.call("ZCARD", keys.lives) }
