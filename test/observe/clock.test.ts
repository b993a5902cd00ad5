import { setImmediate as turn } from "node:timers/promises"
import t from "tap"
import { systemClock, testClock } from "../../core/observe/clock.ts"

t.test("the system clock tells Unix milliseconds", async t => {
  const before = Date.now()
  t.ok(systemClock.now() >= before && systemClock.now() <= Date.now())
})

t.test("the system clock runs what is due, and not what was cancelled", async t => {
  const ran: string[] = []
  const cancel = systemClock.after(0, () => ran.push("cancelled"))
  cancel()
  // The timer keeps no process alive, so this test holds it open itself.
  const held = setInterval(() => {}, 1000)
  t.teardown(() => clearInterval(held))
  await new Promise<void>(resolve => systemClock.after(1, () => resolve(void ran.push("ran"))))
  t.same(ran, ["ran"])
})

t.test("a delay beyond the timer's range does not fire at once", async t => {
  let ran = false
  const cancel = systemClock.after(2 ** 40, () => {
    ran = true
  })
  t.teardown(cancel)
  await turn()
  await turn()
  t.notOk(ran)
})

t.test("a test clock stands still until it is moved", async t => {
  const clock = testClock(1000)
  t.equal(clock.now(), 1000)
  await clock.advance(250)
  t.equal(clock.now(), 1250)
})

t.test("alarms run in order of time, then of arming, each at its own time", async t => {
  const clock = testClock(0)
  const ran: [string, number][] = []
  const note = (name: string) => () => void ran.push([name, clock.now()])
  clock.after(20, note("late"))
  clock.after(10, note("first"))
  clock.after(10, note("second"))
  clock.after(31, note("never"))
  await clock.advance(30)
  t.same(ran, [
    ["first", 10],
    ["second", 10],
    ["late", 20],
  ])
})

t.test("an alarm armed by another one runs in the same advance when it falls due", async t => {
  const clock = testClock(0)
  const ran: number[] = []
  const again = () => {
    ran.push(clock.now())
    clock.after(10, again)
  }
  clock.after(10, again)
  await clock.advance(35)
  t.same(ran, [10, 20, 30])
})

t.test("promises settle between two alarms", async t => {
  const clock = testClock(0)
  const ran: string[] = []
  clock.after(1, () => void Promise.resolve().then(() => ran.push("promise")))
  clock.after(2, () => void ran.push("alarm"))
  await clock.advance(2)
  t.same(ran, ["promise", "alarm"])
})

t.test("the wall's clock is set without any time passing: what lasts is not concerned", async t => {
  const clock = testClock(1000)
  const ran: [number, number][] = []
  clock.after(20, () => void ran.push([clock.now(), clock.steady()]))
  clock.set(-900)
  t.same([clock.now(), clock.steady()], [100, 1000])
  await clock.advance(20)
  t.same(ran, [[120, 1020]])
})

t.test("the system's steady clock goes on, whatever the wall's says", async t => {
  const real = Date.now
  t.teardown(() => {
    Date.now = real
  })
  const before = systemClock.steady()
  Date.now = () => 5
  t.equal(systemClock.now(), 5)
  t.ok(systemClock.steady() >= before)
})

t.test("a cancelled alarm does not run", async t => {
  const clock = testClock(0)
  let ran = false
  clock.after(5, () => {
    ran = true
  })()
  await clock.advance(10)
  t.notOk(ran)
})
