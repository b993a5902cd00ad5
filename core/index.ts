/** The public face: all that a plugin may import. */
export * from "./adapter.ts"
export { credits, micros } from "./catalog/credits.ts"
export { describePrice } from "./catalog/describe.ts"
export { price } from "./catalog/price.ts"
export * from "./errors.ts"
export * from "./offer.ts"
export * from "./plugin.ts"
export * from "./state/store.ts"
