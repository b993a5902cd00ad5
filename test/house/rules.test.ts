/** The rules of the house that a reader relies on: who may import whom, who owns which package, which words stay out. */
import t from "tap"
import {
  codeOf,
  commentsOf,
  filesBelow,
  foldersBelow,
  importsOf,
  isCode,
  packageOf,
  read,
} from "../fixtures/sources.ts"

const code = [...filesBelow("core"), ...filesBelow("plugins")].filter(isCode)

/** The face, its parts and its small tools. */
const contract = /^core\/(index|plugin|host|adapter|errors|offer|kit\/[^/]+|state\/store)\.ts$/
/** What ties the rooms together. */
const assembly =
  /^core\/(gateway|process|generation|setups|route-body|bootstrap|explain|loader|packages|adapters|testing|version)\.ts$/
/** Amounts, prices and rights are pure functions that the face, the ledger and the command line share. */
const arithmetic = /^core\/catalog\/(price|credits|exact|describe|access|flat)\.ts$/
/** Only types: the shape of a checked configuration. */
const configuration = /^core\/catalog\/config\.ts$/
/** Time is given to everyone, so that no test sleeps. */
const time = /^core\/observe\/clock\.ts$/

/** The first row whose `of` matches a file says which of our own files it may import. */
const rooms: readonly { readonly of: RegExp; readonly may: readonly RegExp[] }[] = [
  { of: contract, may: [contract, arithmetic] },
  { of: /^core\/http\//, may: [contract, /^core\/http\//, time] },
  { of: /^core\/catalog\//, may: [contract, /^core\/catalog\//] },
  { of: /^core\/money\//, may: [contract, /^core\/money\//, arithmetic, time] },
  { of: /^core\/state\//, may: [contract, /^core\/state\//, time, configuration] },
  { of: /^core\/observe\//, may: [contract, /^core\/observe\//] },
  { of: /^core\/(cli(\.ts|\/)|run\.mjs)/, may: [/^core\//] },
  { of: assembly, may: [/^core\/(?!cli)/] },
  { of: /^core\//, may: [] },
]

/** A plugin is a file or a folder of the same name; vendors are one each and share only `common`, the sandbox is one. */
const plugin = (path: string): string => /^plugins\/(?:vendors\/)?[^/.]+/.exec(path)?.[0] ?? path

const isAdapter = (path: string): boolean => path.startsWith("plugins/vendors/")

const mayImport = (from: string, to: string): boolean =>
  from.startsWith("plugins/")
    ? to === "core/index.ts" || plugin(to) === plugin(from) || isShared(from, to)
    : (rooms.find(room => room.of.test(from))?.may.some(pattern => pattern.test(to)) ?? false)

const isShared = (from: string, to: string): boolean =>
  from.startsWith("plugins/vendors/") && to.startsWith("plugins/vendors/common/")

const isOwn = (name: string): boolean => /^(core|plugins|test|bench|config)\//.test(name)

t.test("each room imports only what it may", async t => {
  const strays = code.flatMap(file =>
    importsOf(file)
      .filter(name => isOwn(name) && !mayImport(file, name))
      .map(name => `${file} -> ${name}`),
  )
  t.same(strays, [])
})

const owners: Readonly<Record<string, RegExp>> = {
  undici: /^core\/http\/(upstream|undici-pool\.d)\.ts$/,
  "http-proxy-3": /^core\/http\/upgrade\.ts$/,
  ioredis: /^core\/state\/redis\.ts$/,
  "prom-client": /^core\/observe\/metrics\.ts$/,
  pino: /^core\/observe\/log\.ts$/,
  yaml: /^core\/catalog\/yaml\.ts$/,
  ajv: /^core\/catalog\/schema\.ts$/,
  "ajv-formats": /^core\/catalog\/schema\.ts$/,
  commander: /^core\/cli\/program\.ts$/,
  "gpt-tokenizer": /^plugins\/messages\/tokenizer\.ts$/,
}
const ownerless = new Set(["lru-cache"])

t.test("one package has one owner, and nothing else is used", async t => {
  const strays = code.flatMap(file =>
    importsOf(file)
      .filter(name => !isOwn(name) && !name.startsWith("node:"))
      .filter(name => !ownerless.has(packageOf(name)) && owners[packageOf(name)]?.test(file) !== true)
      .map(name => `${file} -> ${name}`),
  )
  t.same(strays, [])
})

t.test("an adapter does no input or output", async t => {
  const pure = /^node:(buffer|crypto|string_decoder|util)$/
  const strays = code.filter(isAdapter).flatMap(file =>
    importsOf(file)
      .filter(name => name.startsWith("node:") && !pure.test(name))
      .map(name => `${file} -> ${name}`),
  )
  t.same(strays, [])
  for (const file of code.filter(isAdapter)) {
    t.notMatch(codeOf(read(file)), /\b(fetch\(|Date\.now\(|Math\.random\(|setTimeout\(|process\.)/, file)
  }
})

/** Names that are no other word are looked for everywhere in a word; the short ones only alone. */
const longNames =
  /openai|anthropic|google|gemini|claude|chatgpt|mistral|deepseek|voyageai|elevenlabs|perplexity|openrouter|fireworks|bedrock|azure/i
const shortNames = /\b(gpt|cohere|voyage|jina|exa|fal|groq|grok|xai|qwen|kimi|kling|minimax|vertex)\b/i
const named = (text: string): string | undefined => (longNames.exec(text) ?? shortNames.exec(text))?.[0]

t.test("no vendor has a name in core", async t => {
  const testing = "core/testing.ts" // its default configuration must name some wire
  for (const file of filesBelow("core").filter(file => isCode(file) && file !== testing)) {
    t.equal(named(codeOf(read(file))), undefined, `code of ${file}`)
  }
})

t.test("comments in core name no vendor but the hub, where the contract speaks of it", async t => {
  const hub = /\bOpenAI\b/g
  for (const file of filesBelow("core").filter(isCode)) {
    const comments = commentsOf(read(file))
    t.equal(named(contract.test(file) ? comments.replace(hub, "") : comments), undefined, file)
  }
})

t.test("files stay short enough to be read", async t => {
  const long = code.map(file => ({ file, lines: read(file).split("\n").length - 1 })).filter(one => one.lines > 350)
  t.same(long, [])
})

const isText = (path: string): boolean => !/\.(png|jpg|jpeg|webp|mp3|wav|mp4|pdf|bin|gz)$/.test(path)
const texts = filesBelow(".").filter(isText)

t.test("nothing is left for later, and nobody's machine or registry is named", async t => {
  // Built from parts, so that this file does not name them itself.
  const later = new RegExp(`\\b(${["TO" + "DO", "FIX" + "ME", "X" + "XX"].join("|")})\\b`)
  const machine = new RegExp(
    ["/" + "work/", "/tmp/" + "team", "/" + "root/", "/" + "home/[a-z]", "/" + "Users/"].join("|"),
  )
  const registry = new RegExp(
    ["registry" + "\\.npm", "npm" + "js\\.org", "registry" + "\\.yarn", "arti" + "factory", "\\bver" + "daccio"].join(
      "|",
    ),
    "i",
  )
  for (const file of texts) {
    const text = read(file)
    const recorded = file.startsWith("test/fixtures/recorded/")
    if (!recorded && isCode(file)) t.notMatch(text, later, file)
    if (!recorded) t.equal(machine.exec(text)?.[0], undefined, file)
    t.equal(registry.exec(text)?.[0], undefined, file)
  }
})

t.test("every room explains itself", async t => {
  const rooms = ["core", "plugins", "config", "bench", "test", "test/fixtures", "plugins/vendors", "plugins/sandbox"]
  for (const room of [...rooms, ...foldersBelow("core")]) {
    t.ok(filesBelow(room).includes(`${room}/README.md`), `${room}/README.md`)
  }
})

t.test("a plugin says in its first line what it is", async t => {
  const entries = code.filter(file => /^plugins\/(?:[^/]+\.ts|(?!vendors|sandbox)[^/]+\/index\.ts)$/.test(file))
  for (const file of entries) t.match(read(file), /^\/\*\*/, file)
})

t.test("the top level holds what the design names and nothing else", async t => {
  const top = new Set(filesBelow(".").map(path => path.split("/")[0]))
  const expected =
    "package.json package-lock.json tsconfig.json tsconfig.build.json biome.json README.md LICENSE .taprc .gitignore .ci core plugins config bench test"
  t.same(
    [...top].filter(name => !expected.split(" ").includes(name ?? "")),
    [],
  )
})
