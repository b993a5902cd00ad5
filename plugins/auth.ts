/** Who calls: one key, in one of the documented header fields, read fresh from the store on every call. */

import type { IncomingHttpHeaders } from "node:http"
import { GatewayError, type KeyState, keyDigest, type Plugin } from "../core/index.ts"

/** The texts of specification 5.5, exactly. */
const texts = {
  absent: "Authorization header is not supplied",
  malformed: "Bearer token is not supplied",
  invalid: "Invalid API key",
} as const

const stateTexts: Readonly<Record<Exclude<KeyState, "valid">, string>> = {
  revoked: "This API key has been revoked. Create a new key in the console.",
  disabled: "This API key is disabled. Turn it back on in the console, or use another key.",
}

const refuse = (text: string): GatewayError =>
  new GatewayError("unauthorized", text, { headers: { "www-authenticate": "Bearer" }, reason: "invalid_api_key" })

export default {
  name: "auth",
  api: 1,
  setup(host) {
    host.use({
      on: route => route.access === "key",
      provides: ["principal"],
      async run(call, next) {
        const key = keyOf(call.headers, host.dialectOf(call.route.dialect)?.keyHeaders ?? [])
        // The whole key is hashed and looked up at once: no prefix, no comparison whose time could tell anything.
        const identity = await host.store.directory.identify(keyDigest(key))
        if (identity === undefined) throw refuse(texts.invalid)
        const { key: record, organisation } = identity
        if (record.state !== "valid") throw refuse(stateTexts[record.state])
        if (!organisation.gateway) {
          throw host.error("gateway_disabled", "The Gateway API is disabled for your organisation.")
        }
        call.set("principal", {
          organisation: record.organisation,
          member: record.member,
          key: record.id,
          identity,
        })
        return next()
      },
    })
  },
} satisfies Plugin

/**
 * The one key of a request.
 *
 * @param more header fields in which this route's own SDK sends the key
 * @throws GatewayError `unauthorized` (401): none, malformed, or two that differ
 */
export const keyOf = (headers: IncomingHttpHeaders, more: readonly string[] = []): string => {
  let key = oneOf(bearerOf(headers.authorization), headers["x-api-key"])
  for (const name of more) key = oneOf(key, headers[name])
  if (key === undefined) throw refuse(texts.absent)
  // A key of other characters than ours was never given out.
  if (!/^[\x21-\x7e]{1,512}$/.test(key)) throw refuse(texts.invalid)
  return key
}

/** Two different keys would leave it open who pays. */
const oneOf = (known: string | undefined, field: string | readonly string[] | undefined): string | undefined => {
  const key = String(field ?? "").trim()
  if (key === "" || key === known) return known
  if (known !== undefined) throw refuse(texts.invalid)
  return key
}

const bearerOf = (authorization: string | undefined): string | undefined => {
  if (authorization === undefined) return undefined
  const token = /^bearer[ \t]+(\S+)[ \t]*$/i.exec(authorization)?.[1]
  if (token === undefined) throw refuse(texts.malformed)
  return token
}
