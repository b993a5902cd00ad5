import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import t from "tap"
import { GatewayError } from "../../core/errors.ts"
import { createLog, type LogLevel } from "../../core/observe/log.ts"

type Line = Record<string, unknown>

const open = (level: LogLevel = "info") => {
  const raw: string[] = []
  const log = createLog({ level, destination: { write: line => void raw.push(line) } })
  return { log, raw, lines: () => raw.map(line => JSON.parse(line) as Line) }
}

/** The line that these fields make. */
const logged = (fields: object, message = "m"): Line => {
  const { log, lines } = open()
  log.info(fields, message)
  return lines()[0]!
}

t.test("a line is one JSON object with level, time, fields and message", async t => {
  const line = logged({ id: "1", status: 200, ok: true, none: null }, "answered")
  t.match(line, { level: "info", time: Number, id: "1", status: 200, ok: true, none: null, msg: "answered" })
})

t.test("a message or fields alone make a line too: no plugin fails by its log", async t => {
  const { log, lines } = open()
  const loose = log as unknown as { info(...given: readonly unknown[]): void }
  for (const given of ["ready", { at: 1 }, undefined]) loose.info(given)
  t.match(lines(), [{ msg: "ready" }, { at: 1, msg: "" }, { msg: "undefined" }])
})

t.test("lines below the level are not written, and their fields are not looked at", async t => {
  const { log, raw } = open("warn")
  const fields = {
    get trap(): string {
      throw new Error("looked at")
    },
  }
  log.debug(fields, "no")
  log.info(fields, "no")
  log.warn({}, "yes")
  log.error({}, "yes")
  t.equal(raw.length, 2)
})

t.test("a child's lines carry its fields, cleaned like all others", async t => {
  const { log, lines } = open()
  log.child({ plugin: "auth", cookie: "a=b" }).child({ generation: 2 }).info({ id: "1" }, "m")
  t.match(lines()[0], { plugin: "auth", cookie: "[secret]", generation: 2, id: "1" })
})

t.test("credentials never stand in a line, at any depth and in any case", async t => {
  const names = ["authorization", "Authorization", "x-api-key", "X-Goog-Api-Key", "cookie", "Set-Cookie"]
  for (const name of names) {
    const { log, raw } = open()
    log.info({ [name]: "canary", request: { headers: { [name]: ["canary"] } }, list: [{ [name]: "canary" }] }, "m")
    t.notMatch(raw[0], /canary/, name)
    t.match(raw[0], /\[secret\]/, name)
  }
})

t.test("URLs lose their query and their user, the rest of the text stays", async t => {
  const texts: [string, string][] = [
    ["https://a.example/b?key=canary", "https://a.example/b?[query]"],
    ["/v1/x?key=canary&b=c", "/v1/x?[query]"],
    ["GET /v1/x?token=canary failed", "GET /v1/x?[query] failed"],
    [
      'fetch "wss://h/p?t=canary" and (http://h?x=canary) failed',
      'fetch "wss://h/p?[query]" and (http://h?[query]) failed',
    ],
    ["connect redis://user:canary@host:6379/0 refused", "connect redis://[secret]@host:6379/0 refused"],
    ["is a/b? yes", "is a/b? yes"],
    ["mail me@example.com?", "mail me@example.com?"],
  ]
  for (const [text, expected] of texts) t.equal(logged({ text }).text, expected)
  t.equal(logged({}, texts[0]![0]).msg, texts[0]![1])
})

t.test("a long string is cut and says how long it was", async t => {
  const text = String(logged({ text: "x".repeat(5000) }).text)
  t.ok(text.length < 2100)
  t.match(text, /\.\.\. \(5000 characters\)$/)
  t.equal(logged({ text: "x".repeat(2048) }).text, "x".repeat(2048))
})

t.test("a line holds no raw control byte, whatever the fields hold", async t => {
  const { log, raw } = open()
  const every = Array.from({ length: 0x2030 }, (_, code) => String.fromCharCode(code)).join("")
  for (let at = 0; at < every.length; at += 1000) {
    log.info({ text: every.slice(at, at + 1000), [every.slice(at, at + 1000)]: 1 }, every.slice(at, at + 1000))
  }
  for (const line of raw) t.notMatch(line.slice(0, -1), /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/)
})

t.test("bytes are told by their length", async t => {
  t.same(logged({ body: Buffer.from("canary") }).body, { bytes: 6 })
})

t.test("an error tells its type, message, code and cause", async t => {
  const cause = Object.assign(new TypeError("connect https://u:canary@h/?k=canary"), { code: "ECONNREFUSED" })
  const line = logged({ error: new GatewayError("internal", "Internal error", { cause }) })
  t.match(line.error, { type: "GatewayError", message: "Internal error", code: "internal", stack: String })
  t.match(line.error, {
    cause: { type: "TypeError", code: "ECONNREFUSED", message: "connect https://[secret]@h/?[query]" },
  })
  t.notMatch(JSON.stringify(line), /canary/)
  t.match(logged(new Error("boom")).error, { message: "boom" })
})

t.test("a value with a printed form of its own is logged by it", async t => {
  t.equal(logged({ secret: { toJSON: () => "[secret]", value: "canary" } }).secret, "[secret]")
})

t.test("strange fields make a bounded line and never throw", async t => {
  const circle: Line = {}
  circle.self = circle
  t.doesNotThrow(() => logged({ circle }))
  t.equal((logged({ list: new Array(10_000).fill(1) }).list as number[]).length, 64)
  t.ok(Object.keys(logged(Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`f${n}`, n])))).length < 80)
  t.equal(logged({ big: 10n }).big, "10")
  const line = logged(JSON.parse('{"__proto__": {"polluted": true}, "id": 1}'))
  t.equal(line.id, 1)
  t.notOk("polluted" in line)
})

t.test("a line that needs no cleaning stands as it is beside one that does", async t => {
  const clean = { id: "1", usage: { input: 3, tier: "flex" }, none: null, left: undefined }
  const { id, usage } = logged(clean)
  t.same({ id, usage }, { id: "1", usage: clean.usage })
  t.match(logged({ ...clean, cookie: "canary" }), { id: "1", usage: clean.usage, cookie: "[secret]" })
  t.notMatch(JSON.stringify(logged({ ...clean, usage: { tier: "canary", Cookie: "canary2" } })), /canary2/)
})

t.test("buffered lines are written when the process exits at once", async t => {
  const file = fileURLToPath(new URL("../../core/observe/log.ts", import.meta.url))
  const script = `const { createLog } = await import(${JSON.stringify(file)})
    const log = createLog({ level: "info" })
    for (let n = 0; n < 100; n += 1) log.info({ n }, "line")
    process.exit(0)`
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" })
  t.equal(stdout.trimEnd().split("\n").length, 100)
})
