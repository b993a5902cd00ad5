-- KEYS holds lives; ARGV time. Returns a flat list: id, micros, milliseconds left.
local at = clock(ARGV[1])
local found = {}
local lives = redis.call("ZRANGE", KEYS[2], 0, -1, "WITHSCORES")
for index = 1, #lives, 2 do
  found[#found + 1] = lives[index]
  found[#found + 1] = redis.call("HGET", KEYS[1], lives[index]) or "0"
  found[#found + 1] = whole(tonumber(lives[index + 1]) - at)
end
return found
