/** Limits and sampling of a chat request, within what the vendor and the model take. */

import { type ChatRequest, isSet, type Model, type Rules, refuse } from "../../../../core/index.ts"

/** For models whose largest output the catalog does not tell. */
const defaultLimit = 8_192

/** The vendor demands a limit: the client's, else all that the model can; never more than that. */
export const limitOf = ({ max_completion_tokens, max_tokens }: ChatRequest, { maxOutput }: Model): number => {
  const asked = [max_completion_tokens, max_tokens].find(value => typeof value === "number")
  return Math.min(asked ?? maxOutput ?? defaultLimit, maxOutput ?? Number.POSITIVE_INFINITY)
}

/** The vendor refuses sequences without a visible character. */
export const stopsOf = ({ stop }: ChatRequest): readonly string[] | undefined => {
  const stops = [stop].flat().filter((one): one is string => typeof one === "string" && one.trim() !== "")
  return stops.length === 0 ? undefined : stops
}

export interface Sampling {
  readonly temperature?: number
  readonly top_p?: number
  readonly top_k?: number
}

/** The vendor's scale ends at 1, OpenAI's at 2. */
const hottest = 1
/** Thinking leaves this much room only. */
const thinkingTopP = 0.95

/** @throws GatewayError (400) for values that the model, or its thinking, does not allow */
export const samplingOf = (request: ChatRequest, rules: Rules, isThinking: boolean): Sampling => {
  const { temperature, top_p, top_k } = numbers(request)
  checkRules(request, rules)
  if (isThinking) return whileThinking({ temperature, top_p, top_k })
  const asked = {
    ...(temperature === undefined || rules.temperature !== undefined ? {} : { temperature }),
    ...(top_p === undefined ? {} : { top_p }),
  }
  return { ...oneOf(asked), ...(top_k === undefined ? {} : { top_k }) }
}

const numbers = ({ temperature, top_p, top_k }: ChatRequest) => ({
  temperature: typeof temperature === "number" ? Math.min(temperature, hottest) : undefined,
  top_p: typeof top_p === "number" ? top_p : undefined,
  top_k: typeof top_k === "number" ? top_k : undefined,
})

const checkRules = (request: ChatRequest, { temperature, refuse: refused = [] }: Rules): void => {
  const value = request.temperature
  if (temperature !== undefined && typeof value === "number" && !temperature.includes(value)) {
    throw refuse("temperature", `Model '${request.model}' takes no other 'temperature' than ${temperature.join(", ")}`)
  }
  const name = ["temperature", "top_p", "top_k"].find(name => refused.includes(name) && isSet(request[name]))
  if (name !== undefined) throw refuse(name, `Model '${request.model}' does not take '${name}'`)
}

type Asked = { readonly [Name in keyof Sampling]: Sampling[Name] | undefined }

const whileThinking = ({ temperature = hottest, top_p = 1, top_k }: Asked): Sampling => {
  if (temperature !== hottest) throw refuse("temperature", "'temperature' must be 1 while the model thinks")
  if (top_k !== undefined) throw refuse("top_k", "'top_k' is not supported while the model thinks")
  if (top_p < thinkingTopP) throw refuse("top_p", `'top_p' must be at least ${thinkingTopP} while the model thinks`)
  return top_p === 1 ? {} : { top_p }
}

/** The vendor takes one of both. Temperature wins, unless it says nothing. */
const oneOf = ({ temperature, top_p }: Sampling): Sampling => {
  if (temperature === undefined || top_p === undefined) return { ...asGiven({ temperature, top_p }) }
  return temperature === hottest && top_p !== 1 ? { top_p } : { temperature }
}

const asGiven = ({ temperature, top_p }: Asked): Sampling => ({
  ...(temperature === undefined ? {} : { temperature }),
  ...(top_p === undefined ? {} : { top_p }),
})
