/** A ledger in twenty lines is the model; both stores must agree with it after every step. */

import { randomUUID } from "node:crypto"
import fc from "fast-check"
import t, { type Test } from "tap"
import { checkLedger } from "../../core/money/check.ts"
import { openRedis } from "../../core/state/redis.ts"
import { openSqlite } from "../../core/state/sqlite.ts"
import type { Balance, Store, StoreOptions } from "../../core/state/store.ts"
import { startRedis } from "../fixtures/redis.ts"
import { alice, chargeOf, dayOf, holdOf, life, start } from "../fixtures/store-contract.ts"

interface Model {
  now: number
  granted: number
  available: number
  readonly grants: Set<string>
  readonly holds: Map<string, { readonly micros: number; expiresAt: number }>
  readonly charges: Map<string, { readonly charged: number; readonly shortfall: number; refunded: boolean }>
}

interface Real {
  store: Store
  /** Opens the same store again. Holds of an engine that keeps them in memory are gone. */
  reopen(): Promise<void>
  readonly keepsHolds: boolean
  readonly setNow: (now: number) => void
}

type Step = fc.AsyncCommand<Model, Real>

const sum = (values: Iterable<number>): number => [...values].reduce((total, value) => total + value, 0)
const heldOf = (model: Model): number => sum([...model.holds.values()].map(({ micros }) => micros))
const spentOf = (model: Model): number =>
  sum([...model.charges.values()].map(({ charged, refunded }) => (refunded ? 0 : charged)))

const expect = (real: unknown, wanted: unknown, what: string): void => {
  const [got, want] = [JSON.stringify(real), JSON.stringify(wanted)]
  if (got !== want) throw new Error(`${what}: ${got} instead of ${want}`)
}

const agree = async (model: Model, { store }: Real): Promise<void> => {
  const { granted, available, held, spent }: Balance = await store.accounts.balance(alice)
  expect([granted, available, held, spent], [model.granted, model.available, heldOf(model), spentOf(model)], "balance")
  expect(granted, available + held + spent, "granted = available + held + spent")
}

const step = (name: string, run: (model: Model, real: Real) => Promise<void>): Step => ({
  check: () => true,
  toString: () => name,
  async run(model, real) {
    await run(model, real)
    await agree(model, real)
  },
})

const grant = (id: string, micros: number): Step =>
  step(`grant(${id}, ${micros})`, async (model, { store }) => {
    await store.accounts.grant(id, alice, micros, "gift")
    if (model.grants.has(id)) return
    model.grants.add(id)
    model.granted += micros
    model.available += micros
  })

/** Ids are used once in the product, and their verbs repeated: an id that ended is not held again. */
const ended = (model: Model, id: string): boolean => model.charges.has(id)

const hold = (id: string, micros: number, least: number): Step => ({
  ...step(`hold(${id}, ${micros}, ${least})`, async (model, { store }) => {
    const answer = await store.accounts.hold(holdOf(id, micros, { least }))
    const open = model.holds.get(id)
    const exhausted = open === undefined && model.available < least
    const wanted = open?.micros ?? Math.min(micros, model.available)
    expect(answer, exhausted ? { state: "exhausted" } : { state: "held", micros: wanted }, "hold")
    if (exhausted || open !== undefined) return
    model.available -= wanted
    model.holds.set(id, { micros: wanted, expiresAt: model.now + life })
  }),
  check: model => !ended(model, id),
})

const settle = (id: string, micros: number): Step =>
  step(`settle(${id}, ${micros})`, async (model, { store }) => {
    const answer = await store.accounts.settle(chargeOf(id, micros))
    const before = model.charges.get(id)
    const available = model.available + (model.holds.get(id)?.micros ?? 0)
    const charged = before?.charged ?? Math.min(micros, available)
    const shortfall = before?.shortfall ?? micros - charged
    expect(answer, { charged, shortfall, repeated: before !== undefined }, "settle")
    if (before !== undefined) return
    model.holds.delete(id)
    model.available = available - charged
    model.charges.set(id, { charged, shortfall, refunded: false })
  })

const release = (id: string): Step =>
  step(`release(${id})`, async (model, { store }) => {
    await store.accounts.release(id, alice)
    model.available += model.holds.get(id)?.micros ?? 0
    model.holds.delete(id)
  })

const renew = (id: string): Step =>
  step(`renew(${id})`, async (model, { store }) => {
    const open = model.holds.get(id)
    expect(await store.accounts.renew([{ id, member: alice }]), open === undefined ? [] : [id], "renew")
    if (open !== undefined) open.expiresAt = model.now + life
  })

const sweep = (ms: number): Step =>
  step(`sweep(after ${ms} ms)`, async (model, { store, setNow }) => {
    model.now += ms
    setNow(model.now)
    const overdue = [...model.holds].filter(([, { expiresAt }]) => expiresAt <= model.now)
    expect(await store.accounts.sweep(), overdue.length, "lapsed")
    for (const [id, { micros }] of overdue) {
      model.holds.delete(id)
      model.available += micros
    }
  })

const refund = (id: string): Step =>
  step(`refund(${id})`, async (model, { store }) => {
    const charge = model.charges.get(id)
    const wanted = charge === undefined ? undefined : charge.refunded ? 0 : charge.charged
    expect(await store.accounts.refund(id, alice, "failed"), wanted, "refund")
    if (charge === undefined || charge.refunded) return
    charge.refunded = true
    model.available += charge.charged
  })

const reopen = (): Step =>
  step("reopen()", async (model, real) => {
    await real.reopen()
    if (real.keepsHolds) return
    model.available += heldOf(model)
    model.holds.clear()
  })

const id = fc.constantFrom("a", "b", "c", "d")
const amount = fc.oneof(fc.nat(50), fc.nat(1_000))
const steps = [
  fc.tuple(fc.constantFrom("g1", "g2", "g3"), amount).map(given => grant(...given)),
  fc.tuple(id, amount, amount).map(([name, one, other]) => hold(name, Math.max(one, other), Math.min(one, other))),
  fc.tuple(id, amount).map(given => settle(...given)),
  id.map(release),
  id.map(renew),
  fc.constantFrom(1, life / 2, life).map(sweep),
  id.map(refund),
  fc.constant(reopen()),
]

type Open = (options: StoreOptions) => Promise<Store>

const holdsTo = async (t: Test, runs: number, keepsHolds: boolean, make: () => Open): Promise<void> => {
  const property = fc.asyncProperty(fc.commands(steps, { maxCommands: 40 }), async commands => {
    let now = start
    const open = make()
    const options: StoreOptions = { now: () => now, day: dayOf, holdLifeMs: life }
    const real: Real = {
      store: await open(options),
      keepsHolds,
      setNow: later => {
        now = later
      },
      async reopen() {
        await real.store.close()
        real.store = await open(options)
      },
    }
    const model: Model = { now, granted: 0, available: 0, grants: new Set(), holds: new Map(), charges: new Map() }
    try {
      await fc.asyncModelRun(() => ({ model, real }), commands)
      for await (const finding of checkLedger(real.store)) throw new Error(finding.message)
    } finally {
      await real.store.close()
    }
  })
  await fc.assert(property, { numRuns: runs, endOnFailure: true, includeErrorInReport: true }) // the error says seed and path
  t.pass(`${runs} sequences`)
}

t.test("money is conserved in the embedded store", async t => {
  const folder = t.testdir()
  await holdsTo(t, 300, false, () => {
    const path = `${folder}/${randomUUID()}.db`
    return options => openSqlite({ ...options, path, durability: "process" })
  })
})

t.test("money is conserved on Redis", async t => {
  const { url } = await startRedis(t, { options: ["--appendfsync", "no"] })
  await holdsTo(t, 150, true, () => {
    const prefix = randomUUID()
    return options => openRedis({ ...options, url, cluster: false, prefix, deadlineMs: 5_000, serverTime: false })
  })
})
