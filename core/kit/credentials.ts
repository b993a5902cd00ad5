/** The header fields that clients send keys in, whatever the dialect: at most one of each, never passed on, never logged. */
export const credentialFields = ["authorization", "x-api-key", "x-goog-api-key"] as const
