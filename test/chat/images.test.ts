/** Bug 33: image blocks of the Messages wire on the chat route. */
import t from "tap"
import { withImageUrls } from "../../plugins/chat/images.ts"
import { openProduct, productCatalog } from "../fixtures/product.ts"

const data = Buffer.from("\x89PNG\r\n\x1a\n.......", "latin1").toString("base64")
const inline = { type: "image", source: { type: "base64", media_type: "image/png", data } }
const linked = { type: "image", source: { type: "url", url: "https://pictures.example/a.png" } }
const ask = (...content: readonly object[]) => ({ model: "gpt", messages: [{ role: "user", content }] })

t.test("a block becomes a part, and nothing else changes", async t => {
  const text = { type: "text", text: "See" }
  const marker = { cache_control: { type: "ephemeral" } }
  t.same(withImageUrls(ask(text, { ...inline, ...marker }, linked)), {
    ...ask(
      text,
      { type: "image_url", image_url: { url: `data:image/png;base64,${data}` }, ...marker },
      { type: "image_url", image_url: { url: linked.source.url } },
    ),
  })
  const plain = ask(text, { type: "image", image: "https://pictures.example/a.png" })
  t.equal(withImageUrls(plain), plain)
  const silent = { model: "gpt", messages: [{ role: "user", content: "Hi" }, { role: "assistant" }] }
  t.equal(withImageUrls(silent), silent)
})

t.test("a block without an image is refused at its place", async t => {
  const sources = [
    {},
    { type: "url" },
    { type: "url", url: "ms://f" },
    { type: "base64", data },
    { type: "base64", media_type: "image/png" },
  ]
  for (const source of [...sources, { type: "file", file_id: "f" }]) {
    const request = ask({ type: "text", text: "See" }, { type: "image", source })
    const refused = { code: "invalid_request", param: "messages[0].content[1].source" }
    t.throws(() => withImageUrls(request), refused, JSON.stringify(source))
  }
})

t.test("each wire gets the image in its own words", async t => {
  const { claude, gemini, gpt } = productCatalog.models
  const capabilities = ["vision", "files"]
  const models = { claude: { ...claude, capabilities }, gemini: { ...gemini, capabilities }, gpt }
  const { vendor, call } = await openProduct(t, { catalog: { models } })
  for (const model of Object.keys(models)) {
    await (await call("/chat/completions/", { ...ask(inline), model })).text()
  }
  t.match(
    vendor.received.map(one => one.json()),
    [
      { messages: [{ content: [inline] }] },
      { contents: [{ parts: [{ inlineData: { mimeType: "image/png", data } }] }] },
      { messages: [{ content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${data}` } }] }] },
    ],
  )
  const held = await call("/chat/completions/", ask({ type: "image", source: { type: "file", file_id: "f" } }))
  t.match([held.status, vendor.received.length], [400, 3])
})
