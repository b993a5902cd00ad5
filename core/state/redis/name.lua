-- KEYS name; ARGV fresh. Returns the name of the store, after giving it one if it has none. Always writes, to fail where writes do.
local name = redis.call("GET", KEYS[1])
if name then redis.call("SETRANGE", KEYS[1], 0, "") else redis.call("SET", KEYS[1], ARGV[1]) end
return name or ARGV[1]
