/** Plugins that cannot be loaded, set up or taken down: each is named, at its line, and keeps nothing else from ending. */

import t, { type Test } from "tap"
import type { Plugin } from "../../core/index.ts"
import { type TestGatewayOptions, testClock, testGateway } from "../../core/testing.ts"

const open = async (t: Test, options: TestGatewayOptions) => {
  const gateway = await testGateway(options)
  t.teardown(() => gateway.close())
  return gateway
}

const refused = (t: Test, options: TestGatewayOptions, message: RegExp) => t.rejects(open(t, options), { message })

const guards = ["metrics", "access-log", "edge", "body-size", "auth", "rate-limit", "model", "pricing"]

const written = (t: Test, files: Readonly<Record<string, string>>) => {
  const folder = t.testdir(files)
  return Object.keys(files).map(name => `${folder}/${name}`)
}

const never = new Promise<never>(() => {})

/** The time passes as soon as something waits for it. */
const passing = (ms: number) => {
  const clock = testClock()
  return {
    ...clock,
    after: (wait: number, run: () => void) => {
      const cancel = clock.after(wait, run)
      if (wait === ms) void clock.advance(ms)
      return cancel
    },
  }
}

t.test("a setup that never ends stops the start after the time of a step, and is named", async t => {
  const files = written(t, {
    "stuck.js": "export default { name: 'stuck', api: 1, setup: () => new Promise(() => {}) }",
  })
  await refused(
    t,
    { clock: passing(7_000), gateway: { limits: { step: "7s" }, plugins: [...guards, ...files] } },
    /gateway\.yaml:\d+:\d+ plugins\.8: plugin stuck: setup did not end within 7s/,
  )
})

t.test("a setup that hangs at a reload leaves the old configuration, and what it makes too late is undone", async t => {
  let finish = (): void => {}
  let hangs = false
  const undone: string[] = []
  const plugin: Plugin = {
    name: "late",
    api: 1,
    async setup() {
      if (hangs) await new Promise<void>(resolve => (finish = resolve))
      return () => void undone.push("late")
    },
  }
  const gateway = await open(t, { clock: passing(7_000), gateway: { limits: { step: "7s" } }, plugins: [plugin] })
  hangs = true
  t.match(await gateway.reload({}), [/given plugins\.late: plugin late: setup did not end within 7s/])
  t.equal((await gateway.call("/credits/")).status, 200)
  t.same(undone, [])
  finish()
  await new Promise(setImmediate)
  t.same(undone, ["late"])
})

t.test("a gateway that is told to stop waits neither for a setup nor for a teardown that never ends", async t => {
  let hangs = false
  const begun = Promise.withResolvers<void>()
  const setup = async () => {
    if (!hangs) return () => never
    begun.resolve()
    return never
  }
  const stuck: Plugin = { name: "stuck", api: 1, setup }
  const gateway = await testGateway({ gateway: { shutdown: "50ms" }, clock: testClock(), plugins: [stuck] })
  hangs = true
  const reload = gateway.reload({})
  await begun.promise
  await gateway.close()
  t.equal(await Promise.race([reload, "under way"]), "under way")
  t.ok(gateway.lines.some(({ msg }) => msg === "stopped before a reload or the plugins had ended"))
})

t.test("a teardown that throws or hangs is logged by its plugin's name, and the others run", async t => {
  const ran: string[] = []
  const plugin = (name: string, teardown: () => unknown): Plugin => ({
    name,
    api: 1,
    setup: () => async () => {
      ran.push(name)
      await teardown()
    },
  })
  const throws = () => {
    throw new Error("no")
  }
  const plugins = [plugin("first", () => {}), plugin("throws", throws), plugin("hangs", () => never)]
  const gateway = await testGateway({ clock: passing(10_000), plugins })
  await gateway.close()
  t.same(ran, ["hangs", "throws", "first"])
  const failed = gateway.lines.filter(({ msg }) => msg === "a plugin could not be torn down")
  t.match(failed, [
    { plugin: "hangs", err: { message: "teardown did not end within 10s" } },
    { plugin: "throws", err: { message: "no" } },
  ])
})

t.test("what a setup throws, and what it hands over that cannot work, is told at its line", async t => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ["throw new Error('no key file')", /no key file/],
    ["host.use({})", /a step needs a function run/],
    ["host.route({ path: '/x/' })", /a route needs a function handle/],
    ["throw host.error('nope', 'x')", /there is no error code "nope"/],
    ["host.dialect({ name: 'plain' })", /host\.dialect: the name plain is taken/],
    [
      "host.adapter({ name: 'mine' })",
      /host\.adapter: missing or of the wrong kind: authorise, fault, apis, dialect\.name/,
    ],
  ]
  const files = written(
    t,
    Object.fromEntries(
      cases.map(([code], at) => [`${at}.js`, `export default { name: "mine", api: 1, setup(host) { ${code} } }`]),
    ),
  )
  for (const [at, [, message]] of cases.entries()) {
    const place = new RegExp(`gateway\\.yaml:\\d+:\\d+ plugins\\.1: plugin mine: ${message.source}`)
    await refused(t, { gateway: { plugins: ["edge", files[at]] } }, place)
  }
})

t.test("a fact that two plugins provide stops the start at the second of them", async t => {
  const step = '{ provides: ["principal"], run: (_, next) => next() }'
  const [mine] = written(t, { "mine.js": `export default { name: "mine", api: 1, setup: host => host.use(${step}) }` })
  await refused(
    t,
    { gateway: { plugins: [...guards, mine] } },
    /gateway\.yaml:\d+:\d+ plugins\.8: .*plugin mine provides "principal", and so does plugin auth above it/,
  )
})

t.test("a name belongs to one plugin: another file, or another plugin given, is refused", async t => {
  const text = "export default { name: 'mine', api: 1, setup() {} }"
  const [one, other] = written(t, { "one.js": text, "other.js": text })
  await refused(
    t,
    { gateway: { plugins: [...guards, one, other] } },
    /gateway\.yaml:\d+:\d+ plugins\.9: plugin mine: another plugin has this name/,
  )
  const given = (): Plugin => ({ name: "mine", api: 1, setup: () => {} })
  await refused(t, { plugins: [given(), given()] }, /given plugins\.mine: plugin mine: another plugin has this name/)
  await refused(
    t,
    { plugins: [{ ...given(), name: "credits" }] },
    /given plugins\.credits: plugin credits: another plugin has this name/,
  )
  await open(t, { gateway: { plugins: [...guards, one, one] } })
})

t.test("a plugin that is given is checked like one that is named", async t => {
  const plugin = { name: "mine", api: 1, setup: () => {} } as const
  await refused(t, { plugins: [{ ...plugin, name: "Not A Name" }] }, /must match/)
  await refused(t, { plugins: [{ ...plugin, api: 2 } as unknown as Plugin] }, /speaks plugin api 2/)
  const options = { type: "object", required: ["url"], properties: { url: { type: "string" } } }
  await refused(t, { plugins: [{ ...plugin, options }] }, /given plugins\.mine\.url: Field required/)
})

t.test("of two lines of one plugin the wrong one is named", t =>
  refused(
    t,
    {
      gateway: {
        plugins: [
          ...guards,
          { proxy: { path: "/x/", vendor: "openai" } },
          { proxy: { path: "/y/", vendor: "openai", dialect: "nope" } },
          { proxy: { path: "/z/", vendor: "openai" } },
        ],
      },
    },
    /gateway\.yaml:\d+:\d+ plugins\.9\.proxy: .*no dialect is called "nope"/,
  ),
)
