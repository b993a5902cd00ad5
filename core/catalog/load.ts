/** Reads gateway.yaml and its catalog. */

export type * from "./config.ts"
