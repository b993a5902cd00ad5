/** `:generateContent`, `:streamGenerateContent` (events or a JSON array) and `:countTokens`. */

import type { JsonObject } from "../../core/index.ts"
import { type Answer, answerTo, type Prompt, piecesOf } from "./answer.ts"
import { google } from "./google.ts"
import { record, records, text, textOf, texts } from "./json.ts"
import { estimateTokens, inputTokens } from "./tokens.ts"
import { type Ask, limitOf, modelOf, Refusal, type Wire } from "./wire.ts"

/** Some clients write the colon as `%3A`; tuned models have a slash in their names. */
const path = (method: string): RegExp => new RegExp(`/(?:models|tunedModels)/(?<model>[^:%]+)(?::|%3[Aa])${method}$`)

export const googleGenerate: Wire = {
  method: "POST",
  path: path("generateContent"),
  manner: google,
  answer: ask => ({ whole: wholeOf(read(ask)) }),
}

export const googleStream: Wire = {
  method: "POST",
  path: path("streamGenerateContent"),
  manner: google,
  answer(ask) {
    const all = chunks(read(ask))
    return ask.query.get("alt") === "sse"
      ? { stream: asEvents(all), type: "text/event-stream" }
      : { stream: asArray(all), type: "application/json" }
  },
}

export const googleCount: Wire = {
  method: "POST",
  path: path("countTokens"),
  manner: google,
  answer(ask) {
    modelOf(ask.path.model)
    const request = record(ask.body.generateContentRequest ?? ask.body)
    const tokens = promptTokens(request)
    return { whole: { totalTokens: tokens, promptTokensDetails: [{ modality: "TEXT", tokenCount: tokens }] } }
  },
}

interface Made {
  readonly model: string
  readonly id: string
  readonly answer: Answer
  readonly showsThoughts: boolean
  readonly signature: string
  readonly prompt: number
}

/** The API takes both spellings of a name. */
const pick = (from: JsonObject, camel: string): unknown =>
  from[camel] ?? from[camel.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)]

const read = (ask: Ask): Made => {
  const model = modelOf(ask.path.model)
  if (records(ask.body.contents).length === 0) throw new Refusal("invalid", "contents: expected at least one content")
  const thinking = record(pick(configOf(ask.body), "thinkingConfig"))
  const answer = answerTo(promptOf(ask.body, thinking))
  return {
    model,
    id: ask.id(""),
    answer,
    showsThoughts: pick(thinking, "includeThoughts") === true,
    signature: Buffer.from(ask.id("sandbox-signature-")).toString("base64"),
    prompt: promptTokens(ask.body),
  }
}

const configOf = (body: JsonObject): JsonObject => record(pick(body, "generationConfig"))

const stopsMax = 5

const promptOf = (body: JsonObject, thinking: JsonObject): Prompt => {
  const config = configOf(body)
  const stop = texts(pick(config, "stopSequences"))
  if (stop.length > stopsMax) throw new Refusal("invalid", "stopSequences: at most 5")
  const budget = pick(thinking, "thinkingBudget")
  const level = pick(thinking, "thinkingLevel")
  if (budget !== undefined && level !== undefined) {
    throw new Refusal("invalid", "thinkingBudget and thinkingLevel cannot be set together")
  }
  return {
    ...conversationOf(body),
    tools: toolsOf(body),
    toolChoice: toolChoiceOf(body),
    format: formatOf(config),
    maxTokens: limitOf(pick(config, "maxOutputTokens"), "maxOutputTokens"),
    stop,
    thinks: Object.keys(thinking).length > 0 && budget !== 0,
  }
}

const conversationOf = (body: JsonObject): Pick<Prompt, "question" | "toolResult"> => {
  const contents = records(body.contents)
  const asked = contents.filter(one => one.role !== "model").map(one => textOf(one.parts))
  const result = records(contents.at(-1)?.parts).find(part => pick(part, "functionResponse") !== undefined)
  return {
    question: asked.findLast(said => said !== "") ?? "",
    toolResult:
      result === undefined ? undefined : JSON.stringify(record(pick(result, "functionResponse")).response ?? {}),
  }
}

const toolsOf = (body: JsonObject): Prompt["tools"] =>
  records(body.tools)
    .flatMap(tool => records(pick(tool, "functionDeclarations")))
    .flatMap(one => {
      const parameters = record(pick(one, "parametersJsonSchema") ?? one.parameters)
      return typeof one.name === "string" ? [{ name: one.name, parameters }] : []
    })

const toolChoiceOf = (body: JsonObject): Prompt["toolChoice"] => {
  const config = record(pick(record(pick(body, "toolConfig")), "functionCallingConfig"))
  if (text(config.mode)?.toUpperCase() === "NONE") return "none"
  const [name] = texts(pick(config, "allowedFunctionNames"))
  return name === undefined ? "free" : { name }
}

const formatOf = (config: JsonObject): JsonObject | undefined => {
  const schema = pick(config, "responseJsonSchema") ?? pick(config, "responseSchema")
  if (schema !== undefined) return record(schema)
  const json = pick(config, "responseMimeType") === "application/json"
  return json ? { properties: { answer: { type: "string" } } } : undefined
}

const promptTokens = (body: JsonObject): number =>
  inputTokens([pick(body, "systemInstruction"), body.contents, body.tools])

const finishOf = (answer: Answer): string => (answer.end === "length" ? "MAX_TOKENS" : "STOP")

/** Candidates leave out the thoughts; a count of 0 is not written. */
const usageOf = ({ prompt, answer }: Made, spoken: number): JsonObject => ({
  promptTokenCount: prompt,
  ...(spoken === 0 ? {} : { candidatesTokenCount: spoken }),
  totalTokenCount: prompt + spoken + answer.thoughtTokens,
  promptTokensDetails: [{ modality: "TEXT", tokenCount: prompt }],
  ...(answer.thoughtTokens === 0 ? {} : { thoughtsTokenCount: answer.thoughtTokens }),
})

const partsOf = (made: Made): readonly JsonObject[] => {
  const { answer, showsThoughts, signature } = made
  return [
    ...(showsThoughts && answer.thought !== "" ? [{ text: answer.thought, thought: true }] : []),
    ...(answer.call === undefined ? [] : [callPart(answer.call, signature)]),
    ...(answer.text === "" ? [] : [{ text: answer.text }]),
  ]
}

const callPart = ({ name, arguments: args }: NonNullable<Answer["call"]>, thoughtSignature: string): JsonObject => ({
  functionCall: { name, args },
  thoughtSignature,
})

const response = (made: Made, parts: readonly JsonObject[], spoken: number, finished: boolean): JsonObject => ({
  candidates: [
    {
      // A limit that the thoughts used up leaves a content without parts.
      content: parts.length === 0 ? { role: "model" } : { parts, role: "model" },
      ...(finished ? { finishReason: finishOf(made.answer) } : {}),
      index: 0,
    },
  ],
  usageMetadata: usageOf(made, spoken),
  modelVersion: made.model,
  responseId: made.id,
})

const spokenTokens = ({ answer }: Made): number => answer.outputTokens - answer.thoughtTokens

const wholeOf = (made: Made): JsonObject => response(made, partsOf(made), spokenTokens(made), true)

/** Each chunk has its new parts only, and the counts so far. The last one has an empty text. */
function* chunks(made: Made): Generator<JsonObject> {
  const { answer, showsThoughts, signature } = made
  if (showsThoughts) {
    for (const piece of piecesOf(answer.thought)) yield response(made, [{ text: piece, thought: true }], 0, false)
  }
  if (answer.call !== undefined) yield response(made, [callPart(answer.call, signature)], spokenTokens(made), false)
  let said = ""
  for (const piece of piecesOf(answer.text)) {
    said += piece
    yield response(made, [{ text: piece }], estimateTokens(said), false)
  }
  yield response(made, answer.outputTokens === answer.thoughtTokens ? [] : [{ text: "" }], spokenTokens(made), true)
}

function* asEvents(all: Iterable<JsonObject>): Generator<string> {
  for (const one of all) yield `data: ${JSON.stringify(one)}\r\n\r\n`
}

function* asArray(all: Iterable<JsonObject>): Generator<string> {
  let before = "["
  for (const one of all) {
    yield before + JSON.stringify(one, null, 2)
    before = "\n,\r\n"
  }
  yield "\n]\n"
}
