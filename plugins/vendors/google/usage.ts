/** Token counts of the generate-content wire: the prompt includes the cache, candidates exclude thoughts. */

import type { Usage } from "../../../core/index.ts"
import { compact, count, type Surprises, within } from "../common/counts.ts"
import { type JsonObject, list, record } from "../common/json.ts"

/** Disjoint buckets of a `usageMetadata`; `undefined` when it holds no count. */
export const tokensOf = (reported: unknown, surprises: Surprises): Usage | undefined => {
  const usage = record(reported)
  const read = (value: unknown) => count(value, surprises)
  // One count makes the others zero.
  const told = [usage.promptTokenCount, usage.candidatesTokenCount, usage.thoughtsTokenCount, usage.totalTokenCount]
  if (told.every(value => read(value) === undefined)) return undefined
  const thoughts = read(usage.thoughtsTokenCount) ?? 0
  return compact({
    ...inputOf(usage, surprises),
    ...outputOf(usage, thoughts, surprises),
    reasoning: thoughts,
  })
}

const inputOf = (usage: JsonObject, surprises: Surprises): Usage => {
  const prompt = count(usage.promptTokenCount, surprises) ?? 0
  const tools = count(usage.toolUsePromptTokenCount, surprises) ?? 0
  const cached = count(usage.cachedContentTokenCount, surprises) ?? 0
  const sound = modality(usage.promptTokensDetails, "AUDIO", surprises)
  const cachedSound = modality(usage.cacheTokensDetails, "AUDIO", surprises)
  const [cacheRead = 0, audio = 0] = within(prompt, [cached, Math.max(0, sound - cachedSound)], surprises)
  return { input: prompt - cacheRead - audio + tools, cache_read: cacheRead, audio_input: audio }
}

const outputOf = (usage: JsonObject, thoughts: number, surprises: Surprises): Usage => {
  const candidates = count(usage.candidatesTokenCount, surprises) ?? 0
  const parts = ["AUDIO", "IMAGE"].map(name => modality(usage.candidatesTokensDetails, name, surprises))
  const [audio = 0, images = 0] = within(candidates, parts, surprises)
  return { output: candidates - audio - images + thoughts, audio_output: audio, image_output: images }
}

const modality = (details: unknown, name: string, surprises: Surprises): number =>
  list(details)
    .map(record)
    .filter(detail => detail.modality === name)
    .reduce((sum, detail) => sum + (count(detail.tokenCount, surprises) ?? 0), 0)
