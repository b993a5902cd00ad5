-- KEYS account entries ids usage; ARGV time id rest day. Returns the micros given back, or nothing.
local keys = { account = KEYS[1], entries = KEYS[2], ids = KEYS[3] }
local at, id = clock(ARGV[1]), ARGV[2]

local charge = redis.call("HGET", keys.ids, "charge " .. id)
if not charge then return false end
if redis.call("HEXISTS", keys.ids, "refund " .. id) == 1 then return "0" end
local sequence, text = string.match(charge, "^(%S+) (%S+)")
local found = redis.call("XRANGE", keys.entries, sequence .. "-0", sequence .. "-0")[1]
if not found then return redis.error_reply("LEDGER row " .. sequence .. " is missing") end
local row = {}
for index = 1, #found[2], 2 do row[found[2][index]] = found[2][index + 1] end

local micros = tonumber(text)
append(keys, "refund", id, at, micros, 0, ARGV[3])
move(keys.account, "spent", "available", micros)
addUsage(KEYS[4], '["' .. ARGV[4] .. '",' .. row.names, sumsOf(-1, micros, row.quantities))
return text
