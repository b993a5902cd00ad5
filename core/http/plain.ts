/** Core's own dialect: for answers outside every route, and for routes that no SDK speaks to. */

import type { Dialect } from "../adapter.ts"

/** A text of the specification may read `type - message`: the whole stands in `detail`, the rest in `error.message`. */
const afterDash = (message: string): string => /^[a-z_]+ - (.*)$/s.exec(message)?.[1] ?? message

export const plain: Dialect = {
  name: "plain",
  render: error => ({
    detail: error.detail,
    error: {
      message: afterDash(error.message),
      type: error.kind.type,
      code: error.reason ?? error.code,
      param: error.param,
    },
  }),
  streamError: (error, requestId) => `data: ${JSON.stringify(plain.render(error, requestId))}\n\n`,
}
