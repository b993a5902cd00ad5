-- KEYS lives; ARGV time life id...
local until_ = whole(clock(ARGV[1]) + tonumber(ARGV[2]))
local renewed = {}
for index = 3, #ARGV do
  if redis.call("ZSCORE", KEYS[1], ARGV[index]) then
    redis.call("ZADD", KEYS[1], until_, ARGV[index])
    renewed[#renewed + 1] = ARGV[index]
  end
end
return renewed
