-- KEYS record; ARGV expected value. Compare and set for a record that never expires.
if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
redis.call("SET", KEYS[1], ARGV[2])
return 1
