-- KEYS window; ARGV time requests window
return hit(KEYS[1], clock(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]))
