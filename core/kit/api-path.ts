/** Where a vendor keeps the API that many hosts copy. */

import type { Vendor } from "../offer.ts"

/** The API lies below `/v1`, or below the `api_path` of the vendor's options (`""` for none). */
export const apiPath = ({ options }: Pick<Vendor, "options">, fallback = "/v1"): string =>
  typeof options.api_path === "string" ? options.api_path : fallback
