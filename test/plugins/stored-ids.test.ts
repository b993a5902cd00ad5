import t from "tap"
import type { StoredIds } from "../../core/index.ts"
import { storedIds as chat } from "../../plugins/chat/foreign.ts"
import { storedIds as decisions } from "../../plugins/decisions/foreign.ts"
import { storedIds as generate } from "../../plugins/generate/foreign.ts"
import { storedIds as messages, uploads } from "../../plugins/messages/foreign.ts"
import { storedIds as responses } from "../../plugins/responses/foreign.ts"
import { openProduct, productCatalog } from "../fixtures/product.ts"

type Case = readonly [what: string, request: Record<string, unknown>, field: string | undefined]

const check = (name: string, { field }: StoredIds, cases: readonly Case[]) =>
  t.test(name, async t => {
    for (const [what, request, expected] of cases) {
      await t.test(`${what}: ${expected === undefined ? "passes" : "is refused"}`, async t => {
        t.equal(field(request), expected)
      })
    }
  })

const part = (content: unknown) => ({ input: [{ role: "user", content: [content] }] })

check("responses", responses, [
  ["a stored prompt", { prompt: { id: "pmpt_1" } }, "prompt.id"],
  ["an uploaded file", part({ type: "input_file", file_id: "file_1" }), "file_id"],
  ["an uploaded image", part({ type: "input_image", file_id: "file_1" }), "file_id"],
  ["a vector store", { tools: [{ type: "file_search", vector_store_ids: ["vs_1"] }] }, "vector_store_ids"],
  ["a container by name", { tools: [{ type: "code_interpreter", container: "cntr_1" }] }, "container"],
  ["a new container with files", { tools: [{ container: { type: "auto", file_ids: ["file_1"] } }] }, "file_ids"],
  [
    "a shell in a container",
    { tools: [{ environment: { type: "container_reference", container_id: "c" } }] },
    "container_id",
  ],
  ["an item by its id", { input: [{ type: "item_reference", id: "rs_1" }] }, "item_reference"],
  ["an item by nothing but its id", { input: [{ id: "rs_1" }] }, "item_reference"],
  ["a new container", { tools: [{ type: "code_interpreter", container: { type: "auto" } }] }, undefined],
  ["a file in the request itself", part({ type: "input_file", file_data: "data:," }), undefined],
  ["a replayed item", { input: [{ type: "reasoning", id: "rs_1", encrypted_content: "x" }] }, undefined],
  ["a replayed message", { input: [{ role: "assistant", id: "msg_1", content: "hi" }] }, undefined],
  ["a tool whose argument is called file_id", { tools: [{ parameters: { properties: { file_id: {} } } }] }, undefined],
  ["a source named by an earlier answer", part({ annotations: [{ file_id: "file_1" }] }), undefined],
  [
    "a replayed call in a container",
    { input: [{ type: "code_interpreter_call", container_id: "c", id: "ci" }] },
    undefined,
  ],
  ["null", { prompt: null, tools: [{ container: null }] }, undefined],
])

const block = (content: unknown) => ({ messages: [{ role: "user", content: [content] }] })

check("messages", messages, [
  ["an uploaded file", block({ type: "document", source: { type: "file", file_id: "file_1" } }), "file_id"],
  [
    "a file inside a tool result",
    block({ type: "tool_result", content: [{ source: { type: "file", file_id: "f" } }] }),
    "file_id",
  ],
  ["a file for a container", block({ type: "container_upload", file_id: "file_1" }), "file_id"],
  ["a container by name", { container: "container_1" }, "container"],
  ["a container by id", { container: { id: "container_1" } }, "container"],
  ["a skill of the account", { container: { skills: [{ type: "custom", skill_id: "skill_1" }] } }, "container"],
  ["a skill of the vendor", { container: { skills: [{ type: "anthropic", skill_id: "pdf" }] } }, undefined],
  ["somebody's thread", { thread: { type: "continue", previous_message_id: "msg_1" } }, "thread"],
  ["a thread named without its type", { thread: { previous_message_id: "msg_1" } }, "thread"],
  ["a new thread", { thread: { type: "create" } }, undefined],
  ["somebody's message to compare with", { diagnostics: { previous_message_id: "msg_1" } }, "diagnostics"],
  ["nothing to compare with", { diagnostics: { previous_message_id: null } }, undefined],
  ["an argument called file_id", block({ type: "tool_use", input: { type: "file", file_id: "mine" } }), undefined],
  ["a file told by an earlier result", block({ type: "code_execution_output", file_id: "file_1" }), undefined],
  ["an image in the request itself", block({ type: "image", source: { type: "base64", data: "" } }), undefined],
])

const photo = (url: unknown) => block({ type: "image", source: { type: "url", url } })

check("messages for models of other families", uploads, [
  ["an upload by a scheme of the vendor's own", photo("ms://file_1"), "source.url"],
  [
    "an upload that a tool shows",
    block({ type: "tool_result", content: photo("MS://f").messages[0]?.content }),
    "source.url",
  ],
  ["a public image", photo("https://example.com/a.png"), undefined],
  [
    "an argument called url",
    block({ type: "tool_use", input: { type: "image", source: { url: "ms://f" } } }),
    undefined,
  ],
])

check("decisions", decisions, [
  ["an uploaded image", part({ type: "input_image", file_id: "file_1" }), "file_id"],
  ["an uploaded file", part({ type: "input_file", file_id: "file_1" }), "file_id"],
  ["an upload by a scheme of the vendor's own", part({ type: "input_image", image_url: "ms://file_1" }), "image_url"],
  ["a public image", part({ type: "input_image", image_url: "https://example.com/a.png" }), undefined],
  ["a state that speaks of files", { state: { file_id: "mine", image_url: "ms://mine" } }, undefined],
])

const fileUri = (uri: unknown) => ({ contents: [{ parts: [{ fileData: { fileUri: uri } }] }] })

check("generate", generate, [
  ["a cache", { cachedContent: "cachedContents/1" }, "cachedContent"],
  ["a cache in the other spelling", { cached_content: "cachedContents/1" }, "cached_content"],
  ["an upload", fileUri("https://generativelanguage.googleapis.com/v1beta/files/1"), "fileUri"],
  ["a host with a dot at its end", fileUri("HTTPS://GENERATIVELANGUAGE.GOOGLEAPIS.COM./v1beta/files/1"), "fileUri"],
  ["an upload by its name", fileUri("files/1"), "fileUri"],
  ["a bucket", fileUri("gs://bucket/1"), "fileUri"],
  ["something that is no text", fileUri({ at: 1 }), "fileUri"],
  ["an upload in the other spelling", { contents: [{ parts: [{ file_data: { file_uri: "files/1" } }] }] }, "file_uri"],
  ["a search store", { tools: [{ fileSearch: { fileSearchStoreNames: ["s"] } }] }, "fileSearchStoreNames"],
  ["a video page", fileUri("https://www.youtube.com/watch?v=1"), undefined],
  ["a public page", fileUri("https://example.com/a.pdf"), undefined],
  [
    "an argument called fileUri",
    { contents: [{ parts: [{ functionCall: { args: { fileUri: "files/1" } } }] }] },
    undefined,
  ],
])

const said = (content: unknown) => ({ messages: [{ role: "user", content: [content] }] })
const image = (image_url: unknown) => said({ type: "image_url", image_url })

check("chat", chat, [
  ["an uploaded file", said({ type: "file", file: { file_id: "file_1" } }), "file_id"],
  ["an uploaded file, named flat", said({ type: "file", file_id: "file_1" }), "file_id"],
  ["a file of a tool's result", { messages: [{ role: "tool", content: [{ file: { file_id: "f" } }] }] }, "file_id"],
  ["a vector store", { tools: [{ type: "file_search", vector_store_ids: ["vs_1"] }] }, "vector_store_ids"],
  ["the sound of an earlier answer", { messages: [{ role: "assistant", audio: { id: "audio_1" } }] }, "audio.id"],
  ["an upload by a scheme of the vendor's own", image({ url: "ms://file_1" }), "image_url"],
  ["an upload by such a text", image("MS://file_1"), "image_url"],
  ["a public image", image({ url: "https://example.com/a.png" }), undefined],
  ["an image in the request itself", image({ url: "data:image/png;base64,AAAA" }), undefined],
  ["an image without a scheme", image({ url: "AAAA" }), undefined],
  ["a file in the request itself", said({ type: "file", file: { file_data: "data:," } }), undefined],
  ["a voice to answer with", { audio: { voice: "alloy", format: "wav" } }, undefined],
  ["a tool whose argument is called file_id", { tools: [{ parameters: { file_id: "mine" } }] }, undefined],
  ["a source named by an earlier answer", said({ annotations: [{ file_id: "file_1" }] }), undefined],
  ["null", { messages: [{ role: "assistant", audio: null, content: [{ file_id: null }] }] }, undefined],
])

const file = '{"type":"document","source":{"type":"file","file_id":"file_1"}}'
const generate1 = "/vendor-b/v1beta/models/gemini:generateContent"

t.test("uploads at a scheme of the vendor's own are refused wherever an image may stand", async t => {
  const { gpt } = productCatalog.models
  const judge = { ...gpt, type: "guard", capabilities: ["chat"] }
  const product = await openProduct(t, { catalog: { models: { gpt: { ...gpt, messages: true }, judge } } })
  const url = "ms://file_1"
  const image = { type: "image_url", image_url: { url } }
  const questions = [{ type: "predicate", instructions: "?" }]
  const cases: readonly (readonly [path: string, body: object])[] = [
    ["/chat/completions/", { model: "gpt", ...said(image) }],
    ["/vendor-a/v1/messages/", { model: "gpt", max_tokens: 9, ...photo(url) }],
    ["/decisions/", { model: "gpt", questions, ...part({ type: "input_image", image_url: url }) }],
    ["/guard/", { model: "judge", input: [image] }],
  ]
  for (const [path, body] of cases) {
    const answer = await product.call(path, body)
    t.equal(answer.status, 400, path)
    t.match(await answer.json(), { detail: / names something stored at the vendor/ }, path)
  }
  t.same(product.vendor.received, [])
})

/** Two parsers may take different ones of what stands twice. */
const hidden: readonly [what: string, path: string, body: string][] = [
  ["an id behind null", "/responses/", '{"model":"gpt","input":[{"file_id":"file_1","file_id":null}]}'],
  ["an id behind its escape", "/responses/", '{"model":"gpt","input":[{"file_id":"file_1","file\\u005fid":null}]}'],
  ["a prompt behind null", "/responses/", '{"model":"gpt","prompt":{"id":"pmpt_1"},"prompt":null}'],
  ["a whole input", "/responses/", '{"model":"gpt","input":[{"file_id":"file_1"}],"input":"hi"}'],
  [
    "a type",
    "/responses/",
    '{"model":"gpt","input":[{"type":"item_reference","type":"message","role":"user","id":"rs_1"}]}',
  ],
  [
    "whole messages",
    "/vendor-a/v1/messages/",
    `{"model":"claude","max_tokens":9,"messages":[{"role":"user","content":[${file}]}],"messages":[]}`,
  ],
  ["a cache behind nothing", generate1, '{"contents":[],"cachedContent":"c/1","cachedContent":""}'],
  ["whole contents", generate1, '{"contents":[{"parts":[{"fileData":{"fileUri":"files/1"}}]}],"contents":[]}'],
]

t.test("what a repeated key may hide is not relayed", async t => {
  const product = await openProduct(t)
  for (const [what, path, body] of hidden) {
    await t.test(what, async t => {
      const answer = await product.call(path, body)
      t.equal(answer.status, 400)
      t.match(await answer.json(), { detail: "The request body repeats a key" })
    })
  }
  t.same(product.vendor.received, [])
})

t.test("a request that names nothing may repeat what nobody reads", async t => {
  const product = await openProduct(t)
  const body = '{"model":"gpt","input":"hi","metadata":{"a":"1","a":"2"}}'
  t.equal((await product.call("/responses/", body)).status, 200)
  t.equal(product.vendor.received[0]?.text, body.replace('"gpt"', '"vendor-model"'))
})
