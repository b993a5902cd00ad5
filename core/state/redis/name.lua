-- KEYS name; ARGV fresh. Answers the name of the store, which gets one when it has none. Always a write, so that it fails where writes do.
local name = redis.call("GET", KEYS[1])
if name then redis.call("SETRANGE", KEYS[1], 0, "") else redis.call("SET", KEYS[1], ARGV[1]) end
return name or ARGV[1]
