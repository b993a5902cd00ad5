/** Core's own dialect: for answers outside every route, and for routes that no SDK speaks to. */

import type { Dialect } from "../adapter.ts"
import { afterDash } from "../kit/dialects.ts"

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
