/** The one file of undici that is needed at run time has no types of its own; the package's index has them. */
declare module "undici/lib/dispatcher/pool.js" {
  export { Pool as default } from "undici"
}
