/** Whatever a vendor reports, the buckets are disjoint, never negative, and add up to what it billed. */
import fc from "fast-check"
import t from "tap"
import { buckets, type Usage } from "../../core/index.ts"
import anthropic from "../../plugins/vendors/anthropic/index.ts"
import google from "../../plugins/vendors/google/index.ts"
import openai from "../../plugins/vendors/openai/index.ts"
import { meter } from "../fixtures/metering.ts"

const tokens = fc.integer({ min: 0, max: 2_000_000 })
const part = fc.option(tokens, { nil: undefined })
const odd = fc.oneof(tokens, fc.constantFrom<unknown>(-1, 0.5, 1e15, "7", null, true, [], {}), fc.jsonValue())

const whole = (answer: object) => ({ streamed: false, body: Buffer.from(JSON.stringify(answer)) })
const inputs = (usage: Usage): number =>
  (usage.input ?? 0) +
  (usage.cache_read ?? 0) +
  (usage.cache_write_5m ?? 0) +
  (usage.cache_write_1h ?? 0) +
  (usage.audio_input ?? 0)
const outputs = (usage: Usage): number => (usage.output ?? 0) + (usage.audio_output ?? 0) + (usage.image_output ?? 0)
const isSound = (usage: Usage | undefined): boolean =>
  buckets.every(bucket => Number.isSafeInteger(usage?.[bucket] ?? 0) && (usage?.[bucket] ?? 0) >= 0) &&
  (usage?.reasoning ?? 0) <= (usage?.output ?? 0) + (usage?.audio_output ?? 0)

t.test("chat: the input side is the prompt, the output side the completion", async () => {
  const property = fc.property(tokens, tokens, part, part, part, part, part, (prompt, completion, ...parts) => {
    const [cached_tokens, cache_write_tokens, audio_tokens, reasoning_tokens, audio] = parts
    const usage = meter(
      openai.apis.chat,
      whole({
        usage: {
          prompt_tokens: prompt,
          completion_tokens: completion,
          total_tokens: prompt + completion,
          prompt_tokens_details: { cached_tokens, cache_write_tokens, audio_tokens },
          completion_tokens_details: { reasoning_tokens, audio_tokens: audio },
        },
      }),
    ).usage
    return usage !== undefined && inputs(usage) === prompt && outputs(usage) === completion && isSound(usage)
  })
  fc.assert(property, { numRuns: 300 })
})

t.test("generate: thoughts add to the candidates, tool prompts to the prompt", async () => {
  const property = fc.property(tokens, tokens, tokens, tokens, part, part, (prompt, candidates, ...rest) => {
    const [thoughts, tools, cached, images] = rest
    const usageMetadata = {
      promptTokenCount: prompt,
      candidatesTokenCount: candidates,
      thoughtsTokenCount: thoughts,
      toolUsePromptTokenCount: tools,
      cachedContentTokenCount: cached,
      candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: images }],
    }
    const usage = meter(google.apis.generate, whole({ usageMetadata })).usage
    return usage !== undefined && inputs(usage) === prompt + tools && outputs(usage) === candidates + thoughts
  })
  fc.assert(property, { numRuns: 300 })
})

t.test("messages: everything reported stands beside the rest", async () => {
  const property = fc.property(tokens, tokens, tokens, tokens, part, (input, output, read, written, hours) => {
    const usage = {
      input_tokens: input,
      output_tokens: output,
      cache_read_input_tokens: read,
      cache_creation_input_tokens: written,
      cache_creation: { ephemeral_1h_input_tokens: hours },
    }
    const found = meter(anthropic.apis.messages, whole({ usage })).usage
    return found !== undefined && inputs(found) === input + read + written && outputs(found) === output
  })
  fc.assert(property, { numRuns: 300 })
})

t.test("no report makes a bucket that cannot be billed", async () => {
  const names =
    "prompt_tokens completion_tokens total_tokens input_tokens output_tokens cache_read_input_tokens " +
    "cache_creation_input_tokens cached_tokens promptTokenCount candidatesTokenCount thoughtsTokenCount " +
    "cachedContentTokenCount toolUsePromptTokenCount cost_in_usd_ticks iterations"
  const details = "prompt_tokens_details completion_tokens_details cache_creation server_tool_use output_tokens_details"
  const fields = [
    ...names.split(" ").map(name => [name, odd]),
    ...details.split(" ").map(name => [name, fc.jsonValue()]),
  ]
  const reported = fc.record(Object.fromEntries(fields), { requiredKeys: [] })
  const apis = [...Object.values(openai.apis), anthropic.apis.messages, google.apis.generate, google.apis.embed]
  const property = fc.property(reported, usage => {
    const answer = whole({ usage, usageMetadata: usage, data: [{}], results: [{}], embedding: {} })
    return apis.every(api => isSound(meter(api, answer).usage))
  })
  fc.assert(property, { numRuns: 300 })
})
