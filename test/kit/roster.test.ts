import t from "tap"
import { Roster } from "../../core/kit/roster.ts"

t.test("a roster is a set: what comes, leaves, comes again and leaves twice", async t => {
  const roster = new Roster<{ place?: number | undefined; name: number }>()
  const all = Array.from({ length: 100 }, (_, name) => ({ name, place: undefined }))
  const like = new Set<(typeof all)[number]>()
  const step = (at: number): number => (at * 37 + 11) % all.length
  for (let turn = 0, at = 0; turn < 5_000; turn += 1, at = step(at + (turn % 7))) {
    const one = all[at]!
    t.equal(roster.has(one), like.has(one))
    if (turn % 3 === 0) t.equal(roster.delete(one), like.delete(one))
    else {
      roster.add(one)
      like.add(one)
    }
    t.equal(roster.size, like.size)
  }
  t.same(
    [...roster].map(({ name }) => name).toSorted((a, b) => a - b),
    [...like].map(({ name }) => name).toSorted((a, b) => a - b),
  )
  const seen: number[] = []
  for (const one of roster) {
    seen.push(one.name)
    for (const other of all) roster.delete(other)
  }
  t.equal(seen.length, 1, "who leaves meanwhile is not told")
})

t.test("a member is in one roster at a time", async t => {
  const [one, other] = [new Roster<object>(), new Roster<object>()]
  const member = {}
  one.add(member)
  t.throws(() => other.add(member), /another/)
  t.notOk(other.delete(member))
  t.ok(one.has(member))
  one.clear()
  other.add(member)
  t.same([one.size, other.size], [0, 1])
})
