import { once } from "node:events"
import { type AddressInfo, connect, createServer } from "node:net"
import t from "tap"
import { Deadlines } from "../../core/http/deadlines.ts"
import { systemClock, testClock } from "../../core/observe/clock.ts"
import type { Clock } from "../../core/plugin.ts"

const item = (deadline: number) => {
  const expired: number[] = []
  return { deadline, expired, expire: (now: number) => void expired.push(now) }
}

/** A clock that counts the alarms which were armed. */
const counting = () => {
  const clock = testClock(0)
  let armed = 0
  const counted: Clock = {
    now: clock.now,
    steady: clock.steady,
    after: (ms, run) => {
      armed += 1
      return clock.after(ms, run)
    },
  }
  return { clock, counted, armed: () => armed }
}

t.test("what came during a long turn of ours is read before anybody is judged", async t => {
  const server = createServer(socket => void socket.write("x")).listen(0, "127.0.0.1")
  t.teardown(() => server.close())
  await once(server, "listening")
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1")
  t.teardown(() => socket.destroy())
  await once(server, "connection")
  const deadlines = new Deadlines(systemClock, 20)
  t.teardown(() => deadlines.stop())
  const one = item(systemClock.steady() + 60)
  socket.once("data", () => {
    one.deadline = Number.POSITIVE_INFINITY
  })
  deadlines.watch(one)
  for (const from = performance.now(); performance.now() - from < 100; );
  await once(socket, "data")
  await new Promise(resolve => setImmediate(resolve))
  t.same(one.expired, [])
})

t.test("an item expires once, at the first scan after its deadline and never before it", async t => {
  const clock = testClock(0)
  const deadlines = new Deadlines(clock, 100)
  t.teardown(() => deadlines.stop())
  const one = item(150)
  deadlines.watch(one)
  await clock.advance(149)
  t.same(one.expired, [])
  await clock.advance(500)
  t.same(one.expired, [200])
})

t.test("a deadline may move while it is watched", async t => {
  const clock = testClock(0)
  const deadlines = new Deadlines(clock, 10)
  t.teardown(() => deadlines.stop())
  const one = item(Number.POSITIVE_INFINITY)
  deadlines.watch(one)
  await clock.advance(1000)
  t.same(one.expired, [])
  one.deadline = 1005
  await clock.advance(20)
  t.same(one.expired, [1010])
})

t.test("an item that is no longer watched does not expire", async t => {
  const clock = testClock(0)
  const deadlines = new Deadlines(clock, 10)
  t.teardown(() => deadlines.stop())
  const one = item(5)
  deadlines.watch(one)
  deadlines.unwatch(one)
  deadlines.unwatch(one)
  await clock.advance(50)
  t.same(one.expired, [])
})

t.test("a thousand items share one timer, and none is armed when all are gone", async t => {
  const { clock, counted, armed } = counting()
  const deadlines = new Deadlines(counted, 10)
  t.teardown(() => deadlines.stop())
  const items = Array.from({ length: 1000 }, () => item(1e9))
  for (const one of items) deadlines.watch(one)
  t.equal(armed(), 1)
  await clock.advance(30)
  t.equal(armed(), 4)
  for (const one of items) deadlines.unwatch(one)
  await clock.advance(1000)
  t.equal(armed(), 4)
  const late = item(0)
  deadlines.watch(late)
  await clock.advance(10)
  t.equal(late.expired.length, 1, "watching starts again")
})

t.test("an expiry that throws does not keep the others from expiring", async t => {
  const clock = testClock(0)
  const deadlines = new Deadlines(clock, 10)
  t.teardown(() => deadlines.stop())
  deadlines.watch({
    deadline: 1,
    expire: () => {
      throw new Error("boom")
    },
  })
  const other = item(1)
  deadlines.watch(other)
  await t.rejects(clock.advance(10), /boom/)
  await clock.advance(10)
  t.equal(other.expired.length, 1)
})

t.test("an item may watch another one, or end one, while it expires", async t => {
  const clock = testClock(0)
  const deadlines = new Deadlines(clock, 10)
  t.teardown(() => deadlines.stop())
  const ended = item(1)
  const added = item(1)
  deadlines.watch({
    deadline: 1,
    expire: () => {
      deadlines.unwatch(ended)
      deadlines.watch(added)
    },
  })
  deadlines.watch(ended)
  await clock.advance(20)
  t.same(ended.expired, [])
  t.equal(added.expired.length, 1)
})

t.test("stop forgets everything", async t => {
  const clock = testClock(0)
  const deadlines = new Deadlines(clock, 10)
  const one = item(5)
  deadlines.watch(one)
  deadlines.stop()
  await clock.advance(50)
  t.same(one.expired, [])
})
