-- KEYS record; ARGV expected ("" or "=" .. value) value ttl
local stands = redis.call("GET", KEYS[1])
if (stands and "=" .. stands or "") ~= ARGV[1] then return 0 end
redis.call("SET", KEYS[1], ARGV[2], "PX", ARGV[3])
return 1
