/** The example of `plugins/README.md`, as it stands there, does what the page says. */
import { readdir, readFile } from "node:fs/promises"
import { basename, join } from "node:path"
import t from "tap"
import type { Plugin } from "../../core/index.ts"
import { builtIn, builtInFolder, importFile } from "../../core/loader.ts"
import { testClock, testGateway } from "../../core/testing.ts"

const example = async (): Promise<Plugin<never>> => {
  const page = await readFile(new URL("../../plugins/README.md", import.meta.url), "utf8")
  const source = /```ts\n(import type[\s\S]*?)```/.exec(page)![1]!
  const code = source.replace(/^import type.*\n/, "").replace(/ satisfies Plugin<.*>/, "")
  return (await import(`data:text/javascript,${encodeURIComponent(code)}`)).default
}

t.test("the office is closed at three and open at nine", async t => {
  for (const [hour, status] of [
    [3, 403],
    [9, 200],
  ] as const) {
    const gateway = await testGateway({ plugins: [await example()], clock: testClock(Date.UTC(2026, 0, 1, hour)) })
    t.teardown(() => gateway.close())
    const messages = [{ role: "user", content: "hi" }]
    const answer = await gateway.call("/chat/completions/", { model: "test-chat", messages })
    t.equal(answer.status, status)
    await answer.text()
  }
})

t.test("the page of the configuration names every option of what is built in", async t => {
  const page = await readFile(new URL("../../config/README.md", import.meta.url), "utf8")
  const modules = [...(await builtIn(builtInFolder)), ...(await builtIn(join(builtInFolder, "vendors")))]
  for (const [name, file] of modules) {
    const { options } = ((await importFile(file)).default ?? {}) as { options?: { properties?: object } }
    t.ok(options === undefined || page.includes(`\`${name}\``), name)
    for (const option of Object.keys(options?.properties ?? {})) t.match(page, `\`${option}`, `${option} of ${name}`)
  }
})

t.test("the page of the vendors names every file beside it", async t => {
  const folder = new URL("../../plugins/vendors/", import.meta.url)
  const page = await readFile(new URL("README.md", folder), "utf8")
  const files = (await readdir(folder, { recursive: true })).filter(name => name.endsWith(".ts"))
  t.ok(files.length > 0)
  for (const file of files)
    t.ok(page.includes(`\`${basename(file)}\``) || /(usage|faults|dialect)\.ts$/.test(file), file)
})
