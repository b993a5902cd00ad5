/** Tells one credential from another where its value must not be kept: old and new ones bear the same name. */

import { createHash } from "node:crypto"
import type { Secret } from "../offer.ts"

const digests = new WeakMap<Secret, string>()

/** The same for equal values, whatever their names. Computed once for each secret, not for each call. */
export const digestOf = (secret: Secret): string => {
  let digest = digests.get(secret)
  if (digest === undefined) {
    digest = createHash("sha256").update(secret.reveal()).digest("base64url")
    digests.set(secret, digest)
  }
  return digest
}
