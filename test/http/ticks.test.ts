import t from "tap"
import { keepTick } from "../../core/http/ticks.ts"

t.test("what is kept has the hidden class of Node's ticks: their properties in their order", async t => {
  const kept = await keepTick()
  t.equal(typeof Reflect.get(kept, "callback"), "function")
  const names = Reflect.ownKeys(kept).map(String)
  t.same(names.slice(0, 2), ["callback", "args"])
  t.ok(names.includes("Symbol(async_id_symbol)"), `it has ${names.join(", ")}`)
  t.equal(await keepTick(), kept, "and it is one for the whole process")
})
