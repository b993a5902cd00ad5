/** `POST /embeddings/`: the OpenAI shape for every embedding model, in both codings of vectors. */

import {
  type Body,
  type Draft,
  estimatedInput,
  GatewayError,
  isSet,
  type Plugin,
  record,
  sendDraft,
  spokeContext,
  spokeOf,
} from "../../core/index.ts"
import { coded } from "./vectors.ts"

const token = { type: "integer", minimum: 0 }

const schema = {
  type: "object",
  required: ["model", "input"],
  properties: {
    model: { type: "string" },
    input: {
      type: ["string", "array"],
      minLength: 1,
      minItems: 1,
      maxItems: 2048,
      items: { type: ["string", "integer", "array"], minLength: 1, minItems: 1, items: token },
    },
    encoding_format: { enum: ["float", "base64", null] },
    dimensions: { type: ["integer", "null"], minimum: 1 },
    input_type: { type: ["string", "null"] },
  },
} as const

export default {
  name: "embeddings",
  api: 1,
  kind: "endpoint",
  setup(host) {
    host.route({
      method: "POST",
      path: "/embeddings/",
      access: "key",
      dialect: "openai",
      model: "body",
      accepts: {
        types: ["embedding"],
        servedBy: adapter => adapter.embeddings !== undefined,
        otherwise: { code: "model_not_found", message: "Model 'X' not found" },
      },
      charge: "usage",
      limit: "common",
      schema,
      counts: { input: tokensOf, characters: body => charactersOf(body.json().input) },
      async handle(call) {
        const request = (await call.body()).json()
        const { model } = call.get("model")
        const coding = request.encoding_format === "base64" ? "base64" : "float"
        const tokens = call.find("quote")?.estimated.input ?? 0
        return call.exchange((target): Draft => {
          const spoke = spokeOf(host.adapterOf(target.vendor), "embeddings")
          refuseUnknown(request, spoke.takes)
          const context = spokeContext(host, model, target)
          const written = (answer: Readonly<Record<string, unknown>>) => ({
            ...answer,
            usage: usageOf(answer.usage, tokens),
            data: coded(answer.data as readonly unknown[], coding),
            model: model.name,
          })
          const sent = spoke.request(request, context)
          return sendDraft(spoke.api, sent, body => written(spoke.whole(body, request, context)))
        })
      },
    })
  },
} satisfies Plugin

/**
 * The two counts of the OpenAI shape, whatever stands beside them. A vendor that counts nothing is billed by the estimate,
 * and that is what the client reads.
 */
const usageOf = (told: unknown, estimated: number) => {
  const usage = record(told)
  const { prompt_tokens, input_tokens, total_tokens } = usage
  const input = [prompt_tokens, input_tokens, total_tokens].find(isNumber) ?? estimated
  return { ...usage, prompt_tokens: input, total_tokens: isNumber(total_tokens) ? total_tokens : input }
}

const isNumber = (value: unknown): value is number => typeof value === "number"

/** Tokens that the client made itself are as many as it sent; those of texts are estimated. */
const tokensOf = (body: Body): number => {
  const parts: readonly unknown[] = [body.json().input].flat(2)
  return parts.every(part => typeof part === "number") ? parts.length : estimatedInput(body.scan)
}

/** Vendors count characters of texts; a token stands for as many as it has on average. */
const charactersPerToken = 4

/** UTF-16 units, which are characters in all but rare scripts and emoji. */
const charactersOf = (input: unknown): number => {
  if (typeof input === "string") return input.length
  if (typeof input === "number") return charactersPerToken
  return Array.isArray(input) ? input.reduce<number>((sum, one) => sum + charactersOf(one), 0) : 0
}

/** What every wire can say, or may leave out because no vector depends on it (`user`). */
const common = new Set(["model", "input", "encoding_format", "dimensions", "input_type", "user"])

/** A field that a wire cannot say would be dropped without a word: the client is told instead. */
const refuseUnknown = (request: Readonly<Record<string, unknown>>, takes: readonly string[] | undefined): void => {
  if (takes === undefined) return
  const unknown = Object.keys(request).find(name => !common.has(name) && !takes.includes(name) && isSet(request[name]))
  if (unknown === undefined) return
  throw new GatewayError("invalid_request", `'${unknown}' is not supported by this model`, { param: unknown })
}
