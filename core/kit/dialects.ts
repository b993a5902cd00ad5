/** What the dialects have in common, and the one that belongs to no SDK. */

import type { Dialect } from "../adapter.ts"
import type { GatewayError } from "../errors.ts"

/** Some texts of the specification read `type - message`: the part after the dash is the message of an SDK's error. */
export const afterDash = (message: string): string => message.replace(/^[a-z]+(?:_[a-z]+)* - /, "")

const render = (error: GatewayError) => ({
  detail: error.detail,
  error: {
    message: afterDash(error.message),
    type: error.kind.type,
    code: error.reason ?? error.code,
    param: error.param,
  },
})

/** For APIs that no SDK speaks to. */
export const plainDialect = (name: string): Dialect => ({
  name,
  render,
  streamError: error => `data: ${JSON.stringify(render(error))}\n\n`,
})

/** Core's own dialect: for answers outside every route, and for routes that name it. */
export const plain = plainDialect("plain")
