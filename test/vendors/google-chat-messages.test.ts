/** Messages towards the generate-content wire: roles, instructions, texts, media. */
import t from "tap"
import { assistant, contentsOf, sent, tool, toolCall } from "../fixtures/google-chat.ts"

const refuses = (param: string) => ({ code: "invalid_request", param })
const user = (content: unknown) => ({ role: "user", content })

t.test("instructions at the start are the system's, later ones keep their place", async t => {
  const messages = [
    { role: "system", content: "one" },
    { role: "developer", content: [{ type: "text", text: "two" }] },
    user("three"),
    { role: "system", content: "four" },
    { role: "assistant", content: "five" },
  ]
  t.same(sent({ messages }), {
    systemInstruction: { parts: [{ text: "one" }, { text: "two" }] },
    contents: [
      { role: "user", parts: [{ text: "three" }, { text: "four" }] },
      { role: "model", parts: [{ text: "five" }] },
    ],
  })
})

t.test("instructions that stand alone are what the user says", async t => {
  t.same(sent({ messages: [{ role: "system", content: "one" }] }), {
    contents: [{ role: "user", parts: [{ text: "one" }] }],
  })
})

t.test("bug 15: empty texts are no parts, and a message without parts is none", async t => {
  const messages = [
    user("a"),
    { role: "assistant", content: "" },
    user([{ type: "text", text: "" }]),
    user([
      { type: "text", text: "b" },
      { type: "text", text: "" },
    ]),
  ]
  t.same(contentsOf(messages), [{ role: "user", parts: [{ text: "a" }, { text: "b" }] }])
  t.throws(() => contentsOf([user("")]), refuses("messages"))
})

t.test("a conversation that begins with the model is opened for it", async t => {
  const [first, second] = contentsOf([assistant(toolCall("1", "f")), tool("1", "{}")])
  t.match(first, { role: "user", parts: [{ text: /./ }] })
  t.match(second, { role: "model", parts: [{ functionCall: { name: "f" } }] })
})

t.test("bug 7: earlier reasoning is not turned into text; refusals are", async t => {
  const said = { role: "assistant", content: "a", reasoning_content: "secret", refusal: "no" }
  t.same(contentsOf([user("q"), said])[1], { role: "model", parts: [{ text: "a" }, { text: "no" }] })
})

t.test("media arrive as data, under their true names", async t => {
  const content = [
    { type: "image_url", image_url: { url: "data:image/jpg;base64,AAAA", detail: "low" } },
    { type: "image_url", image_url: "DATA:image/png;name=x;BASE64,BBBB" },
    { type: "input_audio", input_audio: { data: "CCCC", format: "mp3" } },
    { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,DDDD" } },
  ]
  t.same(contentsOf([user(content)])[0]?.parts, [
    { inlineData: { mimeType: "image/jpeg", data: "AAAA" } },
    { inlineData: { mimeType: "image/png", data: "BBBB" } },
    { inlineData: { mimeType: "audio/mp3", data: "CCCC" } },
    { inlineData: { mimeType: "application/pdf", data: "DDDD" } },
  ])
})

t.test("a URL is the vendor's to open where the model can, and refused elsewhere; nothing is fetched", async t => {
  const image = (url: string) => [user([{ type: "image_url", image_url: { url } }])]
  const able = { capabilities: ["file_urls"] }
  const field = refuses("messages[0].content[0].image_url")
  t.same(contentsOf(image("https://a.example/x.png"), able)[0]?.parts, [
    { fileData: { fileUri: "https://a.example/x.png" } },
  ])
  t.throws(() => contentsOf(image("https://a.example/x.png")), field)
  for (const url of [
    "http://a.example/x.png",
    "ftp://a.example/https://b",
    "https://",
    "gs://bucket/x",
    "files/abc",
    "",
    "AAAA",
  ]) {
    t.throws(() => contentsOf(image(url), able), field, url)
  }
})

t.test("uploads in our account at the vendor are nobody's to name, unless they are shared", async t => {
  const url = "https://generativelanguage.googleapis.com/v1beta/files/abc"
  const messages = [user([{ type: "file", file: { file_data: url } }])]
  const able = { capabilities: ["file_urls"] }
  t.throws(() => contentsOf(messages, able), refuses("messages[0].content[0].file.file_data"))
  const dotted = url.replace("generativelanguage.googleapis.com", "GENERATIVELANGUAGE.GOOGLEAPIS.COM.")
  const same = [user([{ type: "file", file: { file_data: dotted } }])]
  t.throws(() => contentsOf(same, able), refuses("messages[0].content[0].file.file_data"))
  t.same(contentsOf(messages, { ...able, sharedIds: true })[0]?.parts, [{ fileData: { fileUri: url } }])
})

t.test("content that cannot be expressed is refused by its place", async t => {
  const cases: readonly (readonly [part: object, place: string])[] = [
    [{ type: "file", file: { file_id: "file-1" } }, ".file.file_id"],
    [{ type: "input_audio", input_audio: { data: "A", format: "pcm16" } }, ".input_audio.format"],
    [{ type: "input_audio", input_audio: { format: "wav" } }, ".input_audio.data"],
    [{ type: "image_url", image_url: { url: "data:image/png,plain" } }, ".image_url"],
    [{ type: "image_url", image_url: { url: "data:image/png;base64," } }, ".image_url"],
    [{ type: "image_url", image_url: { url: "data:;base64,AAAA" } }, ".image_url"],
    [{ type: "image", source: { type: "base64" } }, ".type"], // bug 33: the block of another wire
    [{ type: "constructor" }, ".type"],
  ]
  for (const [part, place] of cases)
    t.throws(() => contentsOf([user([part])]), refuses(`messages[0].content[0]${place}`))
  t.throws(() => contentsOf([user("a"), { role: "assistant", audio: { id: "a" } }]), refuses("messages[1].audio"))
  t.throws(() => contentsOf([user("a"), { role: "critic", content: "b" }]), refuses("messages[1].role"))
})
