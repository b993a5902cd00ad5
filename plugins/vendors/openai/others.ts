/** Embeddings, rerank, moderations and decisions: whole answers only. */

import {
  apiPath,
  type DecisionsRelay,
  type EmbeddingsSpoke,
  type ModerationSpoke,
  unreadable,
} from "../../../core/index.ts"
import { answerIn } from "../common/answers.ts"
import { list, record } from "../common/json.ts"
import { rerankSpoke } from "../common/rerank.ts"
import { wholeOnly, withUsage } from "../common/whole-meter.ts"
import { withoutLeftOut } from "./left-out.ts"
import { tokensOf } from "./usage.ts"

export const embeddings = wholeOnly((answer, surprises) =>
  withUsage(list(answer.data).length > 0, tokensOf(answer.usage, surprises)),
)

export const embeddingsSpoke: EmbeddingsSpoke = {
  api: "embeddings",
  request: (request, { target, vendor }) => ({
    path: `${apiPath(vendor)}/embeddings`,
    body: { ...withoutLeftOut(request, vendor), model: target.model },
  }),
  whole(body, _request, { model }) {
    const answer = answerIn(body)
    if (!Array.isArray(answer.data)) throw unreadable()
    return { ...answer, model: model.name }
  },
}

export const rerank = wholeOnly((answer, surprises) =>
  withUsage(list(answer.results).length > 0, tokensOf(answer.usage, surprises)),
)

/** Hosts of open models offer it beside chat; OpenAI itself does not. */
export const hostedRerank = rerankSpoke({
  path: ({ vendor }) => `${apiPath(vendor)}/rerank`,
  limit: "top_n",
  results: "results",
  extra: ["rank_fields", "instruct"],
})

/** No token counts: the vendor gives moderations away, a catalog may price the request. */
export const moderations = wholeOnly((answer, surprises) => {
  const delivered = list(answer.results).length > 0
  return withUsage(delivered, tokensOf(answer.usage, surprises) ?? (delivered ? { requests: 1 } : undefined))
})

export const moderationSpoke: ModerationSpoke = {
  api: "moderations",
  request: ({ input }, { target, vendor }) => ({
    path: `${apiPath(vendor)}/moderations`,
    body: { model: target.model, input },
  }),
  whole(body) {
    const answer = answerIn(body)
    if (list(answer.results).length === 0) throw unreadable()
    return answer
  },
}

export const decisions = wholeOnly((answer, surprises) =>
  withUsage(
    Object.keys(record(answer.answers)).length > 0 || list(answer.answers).length > 0,
    tokensOf(answer.usage, surprises),
  ),
)

/** The list form is OpenAI's own; hosts of decision models know the map form by the name of its first maker's API. */
export const decisionsRelay: DecisionsRelay = {
  api: "decisions",
  path: (form, vendor) => `${apiPath(vendor)}/${form === "list" ? "decisions" : "systemone"}`,
}
