/** The 422 of the specification, for what a schema cannot say. */

import { GatewayError } from "../errors.ts"

/**
 * @param loc where: `["query", "from"]`, `["body", "model"]`
 * @param type the kind of problem in the words of the specification's lists: `missing`, `string_type`, `literal_error`
 */
export const invalidInput = (
  loc: readonly (string | number)[],
  msg: string,
  type: string,
  input?: unknown,
): GatewayError =>
  new GatewayError("validation_failed", `${loc.slice(1).join(".")}: ${msg}`, {
    detail: [{ loc, msg, type, ...(input === undefined ? {} : { input }) }],
    ...(loc.length > 1 ? { param: String(loc[1]) } : {}),
  })
