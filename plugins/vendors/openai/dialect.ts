/** How errors look to clients of the OpenAI SDKs. */

import { afterDash, type Dialect, type GatewayError } from "../../../core/index.ts"

const fields = (error: GatewayError) => ({
  message: afterDash(error.message),
  type: error.kind.type,
  code: error.reason,
  param: error.param,
})

const render = (error: GatewayError): Record<string, unknown> => ({ detail: error.detail, error: fields(error) })

export const openaiDialect: Dialect = {
  name: "openai",
  render,
  streamError: error => `data: ${JSON.stringify({ error: fields(error) })}\n\n`,
}

/** The Responses API documents flat fields and sends nested ones: both stand here, SDKs read either. */
export const responsesDialect: Dialect = {
  name: "openai-responses",
  render,
  streamError: error =>
    `event: error\ndata: ${JSON.stringify({ type: "error", ...flat(error), error: fields(error) })}\n\n`,
}

const flat = (error: GatewayError) => {
  const { message, code, param } = fields(error)
  return { message, code, param }
}
