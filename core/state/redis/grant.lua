-- KEYS account entries ids; ARGV time id micros rest most
local keys = { account = KEYS[1], entries = KEYS[2], ids = KEYS[3] }
local id, micros = ARGV[2], tonumber(ARGV[3])
if redis.call("HEXISTS", keys.ids, "grant " .. id) == 0 then
  if amount(redis.call("HGET", keys.account, "granted")) + micros > tonumber(ARGV[5]) then return false end
  append(keys, "grant", id, clock(ARGV[1]), micros, 0, ARGV[4])
  redis.call("HINCRBY", keys.account, "granted", whole(micros))
  redis.call("HINCRBY", keys.account, "available", whole(micros))
end
return redis.call("HMGET", keys.account, "granted", "available", "held", "spent")
