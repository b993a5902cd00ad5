import t from "tap"
import { createBreaker } from "../../core/http/breaker.ts"
import { testClock } from "../../core/observe/clock.ts"
import type { Secret, Vendor } from "../../core/offer.ts"

const secret = (name: string, value = `value of ${name}`): Secret => ({ name, reveal: () => value })

const vendorOf = (secrets: readonly Secret[], change: Partial<Vendor> = {}): Vendor => ({
  name: "v",
  adapter: "a",
  origin: "https://v.example",
  secrets,
  timeouts: { connectMs: 1, firstByteMs: 1, idleMs: 1, totalMs: 1, totalStreamMs: 1 },
  onClientAbort: "drain",
  sharedIds: false,
  options: {},
  ...change,
})

const vendorWith = (...names: string[]): Vendor => vendorOf(names.map(name => secret(name)))

const open = (...vendors: readonly Vendor[]) => {
  const clock = testClock()
  const states: number[] = []
  const gauge = { child: () => ({ set: (value: number) => void states.push(value), add: () => {}, observe: () => {} }) }
  const breaker = createBreaker(clock, gauge)
  breaker.keep(vendors, [])
  return { clock, states, breaker }
}

t.test("five failures in a row rest a secret; then one call probes it, and a success closes the breaker", async t => {
  const vendor = vendorWith("one")
  const { clock, states, breaker } = open(vendor)
  const [one] = vendor.secrets as [Secret]
  for (let i = 0; i < 5; i++) {
    t.ok(breaker.claim(vendor, one, "m"))
    breaker.report(vendor, one, "m", "failed")
  }
  t.notOk(breaker.claim(vendor, one, "m"))
  t.equal(breaker.rest(vendor, "m").ms, 5_000)
  await clock.advance(5_000)
  t.ok(breaker.claim(vendor, one, "m"), "one call probes")
  t.notOk(breaker.claim(vendor, one, "m"), "the others still pass it by")
  breaker.report(vendor, one, "m", "ok")
  t.ok(breaker.claim(vendor, one, "m"))
  t.same(states, [0, 2, 1, 0])
})

t.test("a clock that is set lengthens no rest, and ends none", async t => {
  const vendor = vendorWith("one")
  const { clock, breaker } = open(vendor)
  const [one] = vendor.secrets as [Secret]
  for (let i = 0; i < 5; i++) breaker.report(vendor, one, "m", "failed")
  for (const by of [-3_600_000, 86_400_000]) {
    clock.set(by)
    t.equal(breaker.rest(vendor, "m").ms, 5_000)
    t.notOk(breaker.claim(vendor, one, "m"))
  }
  await clock.advance(5_000)
  t.ok(breaker.claim(vendor, one, "m"))
})

t.test(
  "what the last calls of a model that left tell is shown to nobody, and forgotten when it comes back",
  async t => {
    const vendor = vendorWith("one")
    const { states, breaker } = open(vendor)
    const [one] = vendor.secrets as [Secret]
    const offering = (...models: readonly string[]): void =>
      breaker.keep(
        [vendor],
        models.map(model => ({ vendor: vendor.name, model })),
      )
    offering("m")
    t.ok(breaker.claim(vendor, one, "m"))
    offering()
    for (let i = 0; i < 5; i++) breaker.report(vendor, one, "m", "failed")
    t.same(states, [0])
    t.equal(breaker.rest(vendor, "m").ms, 5_000, "their own next tries spare it")
    offering("m")
    t.ok(breaker.claim(vendor, one, "m"))
    t.same(states, [0])
  },
)

t.test("a probe that fails doubles the rest", async t => {
  const vendor = vendorWith("one")
  const { clock, breaker } = open(vendor)
  const [one] = vendor.secrets as [Secret]
  for (let i = 0; i < 5; i++) breaker.report(vendor, one, "m", "failed")
  await clock.advance(5_000)
  t.ok(breaker.claim(vendor, one, "m"))
  breaker.report(vendor, one, "m", "failed")
  t.equal(breaker.rest(vendor, "m").ms, 10_000)
})

t.test("no rest is longer than a minute, and a success makes the next one short again", async t => {
  const vendor = vendorWith("one")
  const { clock, breaker } = open(vendor)
  const [one] = vendor.secrets as [Secret]
  for (let i = 0; i < 5; i++) breaker.report(vendor, one, "m", "failed")
  const rests: number[] = []
  for (let i = 0; i < 6; i++) {
    rests.push(breaker.rest(vendor, "m").ms)
    await clock.advance(breaker.rest(vendor, "m").ms)
    t.ok(breaker.claim(vendor, one, "m"))
    breaker.report(vendor, one, "m", "failed")
  }
  t.same(rests, [5_000, 10_000, 20_000, 40_000, 60_000, 60_000])
  breaker.report(vendor, one, "m", "ok")
  for (let i = 0; i < 5; i++) breaker.report(vendor, one, "m", "failed")
  t.equal(breaker.rest(vendor, "m").ms, 5_000)
})

t.test("a probe after a fault of our account that fails rests again: it need not fail five times", async t => {
  const vendor = vendorWith("one")
  const { clock, breaker } = open(vendor)
  const [one] = vendor.secrets as [Secret]
  breaker.report(vendor, one, "m", "account")
  await clock.advance(30_000)
  t.ok(breaker.claim(vendor, one, "m"))
  breaker.report(vendor, one, "m", "unreachable")
  t.equal(breaker.rest(vendor, "m").ms, 5_000)
})

t.test("a probe that ended for reasons of ours leaves the next call to probe", async t => {
  const vendor = vendorWith("one")
  const { clock, breaker } = open(vendor)
  const [one] = vendor.secrets as [Secret]
  for (let i = 0; i < 5; i++) breaker.report(vendor, one, "m", "failed")
  await clock.advance(5_000)
  t.ok(breaker.claim(vendor, one, "m"))
  breaker.report(vendor, one, "m", "unknown")
  t.ok(breaker.claim(vendor, one, "m"))
})

t.test("a success in between starts the count anew", async t => {
  const vendor = vendorWith("one")
  const { breaker } = open(vendor)
  const [one] = vendor.secrets as [Secret]
  const four = () => {
    for (let i = 0; i < 4; i++) breaker.report(vendor, one, "m", "failed")
  }
  four()
  breaker.report(vendor, one, "m", "ok")
  four()
  t.ok(breaker.claim(vendor, one, "m"))
})

t.test("a rest tells whether a limit is its reason, of the secret that is back first", async t => {
  const vendor = vendorWith("one", "two")
  const { clock, breaker } = open(vendor)
  const [one, two] = vendor.secrets as [Secret, Secret]
  breaker.report(vendor, one, "m", "account")
  breaker.report(vendor, two, "m", "rate_limited", 10_000)
  t.same(breaker.rest(vendor, "m"), { ms: 10_000, limited: true })
  breaker.report(vendor, two, "m", "rate_limited", 40_000)
  t.same(breaker.rest(vendor, "m"), { ms: 30_000, limited: false })
  await clock.advance(40_000)
  t.ok(breaker.claim(vendor, two, "m"))
  breaker.report(vendor, two, "m", "ok")
  t.same(breaker.rest(vendor, "m"), { ms: 0, limited: false })
})

t.test("a fault of our account rests the secret at once, and only that one", async t => {
  const vendor = vendorWith("one", "two")
  const { breaker } = open(vendor)
  const [one, two] = vendor.secrets as [Secret, Secret]
  breaker.report(vendor, one, "m", "account")
  t.notOk(breaker.claim(vendor, one, "m"))
  t.ok(breaker.claim(vendor, two, "m"))
  t.equal(breaker.rest(vendor, "m").ms, 0, "another secret may be tried now")
})

t.test("a rate limit rests a secret for the time that the vendor names, when there is another", async t => {
  const alone = vendorWith("only")
  const vendor = { ...vendorWith("one", "two"), name: "w" }
  const { clock, breaker } = open(alone, vendor)
  breaker.report(alone, alone.secrets[0] as Secret, "m", "rate_limited", 9_000)
  t.ok(breaker.claim(alone, alone.secrets[0] as Secret, "m"), "a single secret stays in use")
  const [one] = vendor.secrets as [Secret]
  breaker.report(vendor, one, "m", "rate_limited", 9_000)
  t.notOk(breaker.claim(vendor, one, "m"))
  await clock.advance(9_000)
  t.ok(breaker.claim(vendor, one, "m"))
  breaker.report(vendor, one, "m", "ok")
  breaker.report(vendor, one, "m", "rate_limited")
  for (const call of ["one", "two"]) t.ok(breaker.claim(vendor, one, "m"), `no time was named: call ${call} passes`)
  breaker.report(vendor, one, "m", "rate_limited", 3_600_000)
  await clock.advance(60_000)
  t.ok(breaker.claim(vendor, one, "m"), "a minute at most")
})

t.test("a conversation meets the same secret first, and conversations spread over all", async t => {
  const vendor = vendorWith("one", "two", "three")
  const { breaker } = open(vendor)
  const firsts = new Map<string, number>()
  for (let i = 0; i < 300; i++) {
    const first = breaker.order(vendor, `acme/member-${i}`)[0]?.name as string
    t.equal(breaker.order(vendor, `acme/member-${i}`)[0]?.name, first)
    firsts.set(first, (firsts.get(first) ?? 0) + 1)
  }
  t.equal(firsts.size, 3)
  for (const [name, count] of firsts) t.ok(count > 50, `${name} got ${count} of 300`)
})

t.test("a secret that leaves moves only its own conversations", async t => {
  const { breaker } = open()
  const all = vendorWith("one", "two", "three")
  const fewer = vendorWith("one", "two")
  for (let i = 0; i < 100; i++) {
    const before = breaker.order(all, `m${i}`)[0]?.name
    if (before !== "three") t.equal(breaker.order(fewer, `m${i}`)[0]?.name, before)
  }
})

t.test("a model that fails rests alone; what concerns the secret rests all of its models", async t => {
  const vendor = vendorWith("one")
  const { breaker, states } = open(vendor)
  const [one] = vendor.secrets as [Secret]
  for (let i = 0; i < 5; i++) breaker.report(vendor, one, "m", "failed")
  t.notOk(breaker.claim(vendor, one, "m"))
  t.ok(breaker.claim(vendor, one, "other"))
  breaker.report(vendor, one, "other", "ok")
  t.notOk(breaker.claim(vendor, one, "m"), "another's success tells nothing of it")
  t.equal(breaker.rest(vendor, "other").ms, 0)
  t.same(states, [0, 2])
  for (let i = 0; i < 5; i++) breaker.report(vendor, one, i % 2 === 0 ? "other" : "third", "unreachable")
  t.notOk(breaker.claim(vendor, one, "other"))
  t.notOk(breaker.claim(vendor, one, "never tried"))
})

t.test("a new value, origin or way to be called starts afresh; what is unchanged keeps its health", async t => {
  const { breaker, states } = open()
  const targets = [{ vendor: "v", model: "m" }]
  const bench = (vendor: Vendor): void => {
    breaker.keep([vendor], targets)
    t.ok(breaker.claim(vendor, vendor.secrets[0] as Secret, "m"))
    breaker.report(vendor, vendor.secrets[0] as Secret, "m", "account")
    t.equal(breaker.rest(vendor, "m").ms, 30_000)
    t.equal(states.at(-1), 2)
  }
  bench(vendorOf([secret("key", "old")]))
  bench(vendorOf([secret("key", "new")]))
  bench(vendorOf([secret("key", "new")], { origin: "https://w.example" }))
  bench(vendorOf([secret("key", "new")], { origin: "https://w.example", options: { api_path: "" } }))
  const same = vendorOf([secret("key", "new")], { origin: "https://w.example", options: { api_path: "" } })
  breaker.keep([same], targets)
  t.notOk(breaker.claim(same, same.secrets[0] as Secret, "m"), "a reload is no reason to try again")
  t.equal(states.at(-1), 2)
  breaker.keep([], [])
  t.equal(states.at(-1), 0, "what is no more does not rest")
})

t.test("what a call tells of a credential that was replaced is not told of the new one", async t => {
  const before = vendorOf([secret("key", "old")])
  const after = vendorOf([secret("key", "new")])
  const { breaker, states } = open(before)
  t.ok(breaker.claim(before, before.secrets[0] as Secret, "m"))
  breaker.keep([after], [])
  breaker.report(before, before.secrets[0] as Secret, "m", "account")
  t.notOk(breaker.claim(before, before.secrets[0] as Secret, "m"), "its own calls are told")
  t.ok(breaker.claim(after, after.secrets[0] as Secret, "m"))
  t.notOk(states.includes(2))
})

t.test("what a call that outlives a reload tells of an unchanged credential counts", async t => {
  const [before, after] = [vendorWith("key"), vendorWith("key")]
  const { breaker } = open(before)
  breaker.keep([after], [])
  breaker.report(before, before.secrets[0] as Secret, "m", "account")
  t.notOk(breaker.claim(after, after.secrets[0] as Secret, "m"))
})

t.test("a model that left the catalog while it rested is shown no more; the others stay as they are", async t => {
  const vendor = vendorWith("one")
  const [one] = vendor.secrets as [Secret]
  const { breaker, states } = open(vendor)
  for (let i = 0; i < 5; i++) breaker.report(vendor, one, "wrong name", "failed")
  breaker.keep([vendor], [{ vendor: "v", model: "wrong name" }])
  t.same(states, [0, 2])
  breaker.keep([vendor], [{ vendor: "v", model: "right name" }])
  t.same(states, [0, 2, 0])
})
