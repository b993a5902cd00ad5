import fc from "fast-check"
import t from "tap"
import { createRouter } from "../../core/http/router.ts"

const routes = [
  "GET /models/",
  "POST /models/",
  "GET /models/{model}/",
  "POST /models/search/",
  "DELETE /models/{model}",
  "POST /vendor-b/v1beta/models/{model_and_method}",
  "GET /videos/{operation_id+}/",
  "GET /videos/{operation_id+}/content/",
  "GET /a/{x}/b/{y}/",
  "GET /a/{x}/c/",
  "GET /",
].map(text => ({ method: text.split(" ")[0] as string, path: text.split(" ")[1] as string }))

const router = createRouter(routes, "/v1/gateway")

/** `METHOD path {params}` of what matches; `allow ...`; or `nothing`. */
const meets = (method: string, path: string): string => {
  const found = router.match(method, path)
  if (found === undefined) return "nothing"
  if ("allow" in found) return `allow ${found.allow.join(" ")}`
  return `${found.route.method} ${found.route.path} ${JSON.stringify(found.params)}`
}

const get = (path: string): string => meets("GET", `/v1/gateway${path}`)

t.test("a path matches with and without its last slash", async t => {
  for (const path of ["/models", "/models/"]) t.equal(get(path), "GET /models/ {}")
  for (const path of ["/models/x", "/models/x/"]) t.equal(get(path), 'GET /models/{model}/ {"model":"x"}')
  for (const path of ["", "/"]) t.equal(get(path), "GET / {}")
})

t.test("HEAD is GET", async t => {
  t.equal(meets("HEAD", "/v1/gateway/models/"), "GET /models/ {}")
  t.equal(meets("HEAD", "/v1/gateway/models/search/"), 'GET /models/{model}/ {"model":"search"}')
})

t.test("a known path with another method says what is allowed", async t => {
  t.equal(meets("PUT", "/v1/gateway/models"), "allow GET POST HEAD")
  t.equal(meets("PUT", "/v1/gateway/models/search"), "allow POST GET DELETE HEAD")
  t.equal(meets("HEAD", "/v1/gateway/vendor-b/v1beta/models/x"), "allow POST")
  t.equal(meets("constructor", "/v1/gateway/models"), "allow GET POST HEAD")
})

t.test("an unknown path is nothing", async t => {
  const paths = [
    "/v1",
    "/v1/gateway2",
    "/models",
    "/v1/gateway/model",
    "/v1/gateway/models/a/b",
    "",
    "x",
    "*",
    "/v1/GATEWAY/models",
  ]
  for (const path of paths) t.equal(meets("GET", path), "nothing", path)
  for (const path of ["/constructor", "/__proto__", "/a/x/__proto__", "/toString/"]) t.equal(get(path), "nothing", path)
})

t.test("a literal wins over a parameter, when it takes the method", async t => {
  t.equal(meets("POST", "/v1/gateway/models/search"), "POST /models/search/ {}")
  t.equal(get("/models/search"), 'GET /models/{model}/ {"model":"search"}')
  t.equal(get("/a/1/c"), 'GET /a/{x}/c/ {"x":"1"}')
  t.equal(get("/a/1/b/2"), 'GET /a/{x}/b/{y}/ {"x":"1","y":"2"}')
})

t.test("a parameter is decoded, and may hold a colon in either spelling", async t => {
  t.equal(get("/models/a%20b%C3%A9"), 'GET /models/{model}/ {"model":"a bé"}')
  for (const segment of ["gemini:generateContent", "gemini%3AgenerateContent", "gemini%3agenerateContent"]) {
    const found = meets("POST", `/v1/gateway/vendor-b/v1beta/models/${segment}`)
    t.match(found, '{"model_and_method":"gemini:generateContent"}')
  }
  t.equal(get("/models/%2541"), 'GET /models/{model}/ {"model":"%41"}', "decoded once")
})

t.test("literals match as they are written only", async t => {
  t.equal(get("/%6dodels/"), "nothing")
  t.equal(get("/Models/"), "nothing")
})

t.test("an encoded slash is decoded in a greedy parameter only", async t => {
  t.equal(get("/models/a%2Fb"), "nothing")
  t.equal(get("/videos/a%2Fb%2fc"), 'GET /videos/{operation_id+}/ {"operation_id":"a/b/c"}')
})

t.test("a greedy parameter takes one segment or more, and leaves literals behind it to their route", async t => {
  t.equal(get("/videos"), "nothing")
  t.equal(get("/videos/a/b/c/"), 'GET /videos/{operation_id+}/ {"operation_id":"a/b/c"}')
  t.equal(get("/videos/a/b/content"), 'GET /videos/{operation_id+}/content/ {"operation_id":"a/b"}')
  t.equal(get("/videos/content"), 'GET /videos/{operation_id+}/ {"operation_id":"content"}')
})

t.test("empty and dot segments, controls and malformed encoding are no match, anywhere", async t => {
  const bad = ["", ".", "..", "%2e", "%2E%2e", ".%2E", "%", "%4", "%zz", "%ff", "%c0%ae", "%00", "%0a", "%7f"]
  for (const segment of bad) {
    for (const path of [`/models/${segment}/`, `/videos/${segment}/x`, `/videos/x/${segment}/y`, `/a/${segment}/c`]) {
      if (path === "/models//") continue
      t.equal(get(path), "nothing", path)
    }
  }
  for (const path of ["/models//", "//models", "/./models", "/x/../models", "/videos/a%2F..%2Fb", "/videos/..%2Fb"]) {
    t.equal(get(path), "nothing", path)
  }
})

t.test("parameters have no prototype", async t => {
  const found = router.match("GET", "/v1/gateway/models/x")
  t.ok(found && "params" in found && Object.getPrototypeOf(found.params) === null)
})

t.test("routes that mean the same requests stop the start", async t => {
  const build = (...paths: string[]) =>
    createRouter(
      paths.map(path => ({ method: "GET", path })),
      "/",
    )
  t.throws(() => build("/a/", "/a"), /Two routes for GET/)
  t.throws(() => build("/a/{x}/", "/a/{y}"), /Two routes for GET/)
  t.throws(() => build("/a/{x+}/", "/a/{y+}"), /Two routes for GET/)
  t.throws(() => build("/a/{x}/{x}"), /repeated/)
  t.throws(() => build("/a/{x+}/{y}"), /Only literal segments/)
  for (const path of ["/a{x}", "/{}", "/{X}", "/a/../b", "/a%20b", "/{x", "/a b"])
    t.throws(() => build(path), /Bad segment/, path)
  t.doesNotThrow(() => build("/a/{x}/b", "/a/{y}/c", "/a/b", "/a/{z+}"))
})

t.test("property: any value that is a segment comes back as it was encoded", async () => {
  const plain = fc
    .string({ unit: "grapheme", minLength: 1 })
    .filter(text => !/^\.\.?$|[\u0000-\u001f\u007f]/.test(text) && text.isWellFormed())
  const same = fc.property(plain, value => {
    const path = encodeURIComponent(value)
    const single = router.match("DELETE", `/v1/gateway/models/${path}/`)
    const one = value.includes("/")
      ? single === undefined
      : single !== undefined && "params" in single && single.params.model === value
    const dots = value.split("/").some(part => part === "." || part === "..")
    const greedy = router.match("GET", `/v1/gateway/videos/${path}`)
    const many = dots
      ? greedy === undefined
      : greedy !== undefined && "params" in greedy && greedy.params.operation_id === value
    return one && many
  })
  fc.assert(same)
})

t.test(
  "property: whatever the path is, matching does not throw, and a literal path is known only as it is written",
  async () => {
    const piece = fc.constantFrom(
      "/",
      "//",
      ".",
      "..",
      "%2F",
      "%2e",
      "%",
      "models",
      "v1",
      "gateway",
      "videos",
      "content",
      "a",
      "\\",
      ":",
    )
    const paths = fc.array(piece, { maxLength: 12 }).map(pieces => pieces.join(""))
    const known = fc.property(paths, path => {
      const found = router.match("POST", path)
      const literal = found !== undefined && "route" in found && found.route.path === "/models/"
      return literal === /^\/v1\/gateway\/models\/?$/.test(path)
    })
    fc.assert(known, { numRuns: 1000 })
  },
)
