/** Limits and sampling of a chat request. */

import { type ChatRequest, isSet, type JsonObject, type Model, refuse } from "../../../../core/index.ts"

const stopsMax = 5
const candidatesMax = 8

/** Fields that differ in spelling only. */
const renamed: Readonly<Record<string, string>> = {
  temperature: "temperature",
  top_p: "topP",
  top_k: "topK",
  seed: "seed",
  presence_penalty: "presencePenalty",
  frequency_penalty: "frequencyPenalty",
}

/** @throws GatewayError (400) for more stop sequences or choices than the vendor takes */
export const samplingOf = (request: ChatRequest, model: Model): JsonObject => ({
  ...Object.fromEntries(
    Object.entries(renamed)
      .filter(([name]) => isSet(request[name]))
      .map(([name, theirs]) => [theirs, request[name]]),
  ),
  ...limitOf(request, model),
  ...stopsOf(request),
  ...candidatesOf(request),
  ...logprobsOf(request),
})

/** Thinking is inside of the limit, as it is with the hub's reasoning models. */
const limitOf = ({ max_completion_tokens, max_tokens }: ChatRequest, { maxOutput }: Model): JsonObject => {
  const asked = [max_completion_tokens, max_tokens].find(value => typeof value === "number")
  return asked === undefined ? {} : { maxOutputTokens: Math.min(asked, maxOutput ?? asked) }
}

const stopsOf = ({ stop }: ChatRequest): JsonObject => {
  const stops = [stop].flat().filter(one => typeof one === "string" && one !== "")
  if (stops.length > stopsMax) throw refuse("stop", `'stop' takes at most ${stopsMax} sequences`)
  return stops.length === 0 ? {} : { stopSequences: stops }
}

/** Some models know no other number than 1, and not even that. */
const candidatesOf = ({ n }: ChatRequest): JsonObject => {
  if (typeof n !== "number" || n === 1) return {}
  if (n > candidatesMax) throw refuse("n", `'n' is at most ${candidatesMax} for this model`)
  return { candidateCount: n }
}

const logprobsOf = ({ logprobs, top_logprobs }: ChatRequest): JsonObject => {
  if (logprobs !== true) return {}
  return { responseLogprobs: true, ...(isSet(top_logprobs) ? { logprobs: top_logprobs } : {}) }
}
