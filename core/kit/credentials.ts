/** Keys of clients: where they stand, and how the store knows them. */

import { hash } from "node:crypto"

/** The header fields that clients send keys in, whatever the dialect: at most one of each, never passed on, never logged. */
export const credentialFields = ["authorization", "x-api-key", "x-goog-api-key"] as const

/** How a client's key is known to the store: lower-case hex SHA-256 of the whole of it. */
export const keyDigest = (key: string): string => hash("sha256", key)
