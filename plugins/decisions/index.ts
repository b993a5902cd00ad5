/** `POST /decisions/`: typed questions about one input, each answered with probabilities. */

import {
  type Adapter,
  answerId,
  type Call,
  type ChatContext,
  type ChatSpoke,
  createdNow,
  type Draft,
  type Host,
  invalidInput,
  type JsonObject,
  type Model,
  type Outcome,
  type Plugin,
  refuseStoredIds,
  sendDraft,
  spokeContext,
  spokeOf,
  type Target,
} from "../../core/index.ts"
import { decision, type Form } from "./answer.ts"
import { distributionsOf } from "./distribution.ts"
import { storedIds } from "./foreign.ts"
import { chatRequest, type Means } from "./prompt.ts"
import { type Question, questionsOf } from "./questions.ts"

const state = { type: ["string", "object", "array"], minLength: 1 }

const schema = {
  type: "object",
  required: ["model", "questions"],
  properties: { model: { type: "string" }, state, input: state, questions: { type: ["object", "array"] } },
} as const

export default {
  name: "decisions",
  api: 1,
  kind: "endpoint",
  setup(host) {
    host.route({
      method: "POST",
      path: "/decisions/",
      access: "key",
      dialect: "openai",
      model: "body",
      accepts: {
        types: ["llm", "decision"],
        servedBy: ({ chat, decisions }, { type }) =>
          chat !== undefined || (type === "decision" && decisions !== undefined),
        otherwise: { code: "model_not_found", message: "Model 'X' not found" },
      },
      charge: "usage",
      limit: "common",
      schema,
      finds: storedIds.suspects,
      parts: { types: { input_image: "image" } },
      handle: call => decide(host, call),
    })
  },
} satisfies Plugin

const decide = async (host: Host, call: Call): Promise<Outcome> => {
  const body = await call.body()
  refuseStoredIds(host, call, body, storedIds)
  const request = body.json()
  const form: Form = Array.isArray(request.questions) ? "list" : "map"
  const asked = { form, questions: questionsOf(request.questions), state: stateOf(request) }
  const { model } = call.get("model")
  const shared = {
    id: answerId("dec-", call),
    created: createdNow(host),
    includeUsage: false,
  }
  return call.exchange((target: Target): Draft => {
    const adapter = host.adapterOf(target.vendor)
    const context = spokeContext(host, model, target)
    if (model.type === "decision" && adapter.decisions !== undefined) {
      const { api, path } = adapter.decisions
      return { verb: "relay", api, path: path(form, context.vendor), streamed: false }
    }
    return draftOf(spokeOf(adapter, "chat"), asked, { ...shared, ...context }, meansOf(adapter, model))
  })
}

/** `state` of the map form, `input` of the list form; either name will do. */
const stateOf = ({ state, input }: JsonObject): unknown => {
  const given = state ?? input
  if (given !== undefined) return given
  throw invalidInput(["body", "state"], "Field required", "missing")
}

/** Only the hub's own wire tells log probabilities, and reasoning models keep them to themselves. */
const meansOf = ({ chat }: Adapter, { rules, capabilities }: Model): Means => {
  const hides = rules.temperature !== undefined || rules.refuse?.includes("logprobs") === true
  return chat?.stream !== undefined || hides || capabilities.includes("reasoning") ? "stated" : "logprobs"
}

interface Asked {
  readonly form: Form
  readonly questions: readonly Question[]
  readonly state: unknown
}

const draftOf = (spoke: ChatSpoke, asked: Asked, context: ChatContext, means: Means): Draft => {
  const model = context.model.name
  const { memo, ...sent } = spoke.request(chatRequest({ ...asked, model, means }), context)
  const answer = (body: Buffer) => {
    const chat = spoke.whole(body, context, memo)
    return decision({ ...asked, model, distributions: distributionsOf(chat, asked.questions, means), chat })
  }
  return {
    ...sendDraft(spoke.api, sent, answer),
    // A host that does not offer log probabilities says so by refusing them.
    retry: fault =>
      means === "logprobs" && /logprobs/.test(`${fault.param} ${fault.message}`)
        ? draftOf(spoke, asked, context, "stated")
        : undefined,
  }
}
