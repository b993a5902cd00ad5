import t from "tap"
import { createBreaker } from "../../core/http/breaker.ts"
import { testClock } from "../../core/observe/clock.ts"
import type { Secret, Vendor } from "../../core/offer.ts"

const secret = (name: string): Secret => ({ name, reveal: () => `value of ${name}` })

const vendorWith = (...names: string[]): Vendor => ({
  name: "v",
  adapter: "a",
  origin: "https://v.example",
  secrets: names.map(secret),
  timeouts: { connectMs: 1, firstByteMs: 1, idleMs: 1, totalMs: 1, totalStreamMs: 1 },
  onClientAbort: "drain",
  sharedIds: false,
  options: {},
})

const open = () => {
  const clock = testClock()
  const states: number[] = []
  const gauge = { child: () => ({ set: (value: number) => void states.push(value), add: () => {}, observe: () => {} }) }
  return { clock, states, breaker: createBreaker(clock, gauge) }
}

t.test("five failures in a row rest a secret; then one call probes it, and a success closes the breaker", async t => {
  const { clock, states, breaker } = open()
  const vendor = vendorWith("one")
  const [one] = vendor.secrets as [Secret]
  for (let i = 0; i < 5; i++) {
    t.ok(breaker.claim(vendor, one, "m"))
    breaker.report(vendor, one, "m", "failed")
  }
  t.notOk(breaker.claim(vendor, one, "m"))
  t.equal(breaker.restMs(vendor, "m"), 5_000)
  await clock.advance(5_000)
  t.ok(breaker.claim(vendor, one, "m"), "one call probes")
  t.notOk(breaker.claim(vendor, one, "m"), "the others still pass it by")
  breaker.report(vendor, one, "m", "ok")
  t.ok(breaker.claim(vendor, one, "m"))
  t.same(states, [0, 2, 1, 0])
})

t.test("a probe that fails doubles the rest", async t => {
  const { clock, breaker } = open()
  const vendor = vendorWith("one")
  const [one] = vendor.secrets as [Secret]
  for (let i = 0; i < 5; i++) breaker.report(vendor, one, "m", "failed")
  await clock.advance(5_000)
  t.ok(breaker.claim(vendor, one, "m"))
  breaker.report(vendor, one, "m", "failed")
  t.equal(breaker.restMs(vendor, "m"), 10_000)
})

t.test("a probe that ended for reasons of ours leaves the next call to probe", async t => {
  const { clock, breaker } = open()
  const vendor = vendorWith("one")
  const [one] = vendor.secrets as [Secret]
  for (let i = 0; i < 5; i++) breaker.report(vendor, one, "m", "failed")
  await clock.advance(5_000)
  t.ok(breaker.claim(vendor, one, "m"))
  breaker.report(vendor, one, "m", "unknown")
  t.ok(breaker.claim(vendor, one, "m"))
})

t.test("a success in between starts the count anew", async t => {
  const { breaker } = open()
  const vendor = vendorWith("one")
  const [one] = vendor.secrets as [Secret]
  for (let i = 0; i < 20; i++) breaker.report(vendor, one, "m", i % 5 === 4 ? "ok" : "failed")
  t.ok(breaker.claim(vendor, one, "m"))
})

t.test("a fault of our account rests the secret at once, and only that one", async t => {
  const { breaker } = open()
  const vendor = vendorWith("one", "two")
  const [one, two] = vendor.secrets as [Secret, Secret]
  breaker.report(vendor, one, "m", "account")
  t.notOk(breaker.claim(vendor, one, "m"))
  t.ok(breaker.claim(vendor, two, "m"))
  t.equal(breaker.restMs(vendor, "m"), 0, "another secret may be tried now")
})

t.test("a rate limit rests a secret for the time that the vendor names, when there is another", async t => {
  const { clock, breaker } = open()
  const alone = vendorWith("only")
  breaker.report(alone, alone.secrets[0] as Secret, "m", "rate_limited", 9_000)
  t.ok(breaker.claim(alone, alone.secrets[0] as Secret, "m"), "a single secret stays in use")
  const vendor = { ...vendorWith("one", "two"), name: "w" }
  const [one] = vendor.secrets as [Secret]
  breaker.report(vendor, one, "m", "rate_limited", 9_000)
  t.notOk(breaker.claim(vendor, one, "m"))
  await clock.advance(9_000)
  t.ok(breaker.claim(vendor, one, "m"))
})

t.test("a conversation meets the same secret first, and conversations spread over all", async t => {
  const { breaker } = open()
  const vendor = vendorWith("one", "two", "three")
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
  const { breaker, states } = open()
  const vendor = vendorWith("one")
  const [one] = vendor.secrets as [Secret]
  for (let i = 0; i < 5; i++) breaker.report(vendor, one, "m", "failed")
  t.notOk(breaker.claim(vendor, one, "m"))
  t.ok(breaker.claim(vendor, one, "other"))
  breaker.report(vendor, one, "other", "ok")
  t.notOk(breaker.claim(vendor, one, "m"), "another's success tells nothing of it")
  t.equal(breaker.restMs(vendor, "other"), 0)
  t.same(states, [0, 2])
  for (let i = 0; i < 5; i++) breaker.report(vendor, one, i % 2 === 0 ? "other" : "third", "unreachable")
  t.notOk(breaker.claim(vendor, one, "other"))
  t.notOk(breaker.claim(vendor, one, "never tried"))
})
