-- KEYS account holds lives; ARGV id
local open = redis.call("HGET", KEYS[2], ARGV[1])
if open then finish({ account = KEYS[1], holds = KEYS[2], lives = KEYS[3] }, ARGV[1], tonumber(open)) end
return 1
