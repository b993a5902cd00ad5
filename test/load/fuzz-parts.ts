/** All that is fuzzed. */

import { fuzzBodies } from "./fuzz-bodies.ts"
import { fuzzHttp } from "./fuzz-http.ts"
import type { FuzzOptions, FuzzReport } from "./fuzz-report.ts"
import { fuzzStreams } from "./fuzz-streams.ts"
import { fuzzYaml } from "./fuzz-yaml.ts"

export type FuzzPart = (options: FuzzOptions) => Promise<FuzzReport>

export const fuzzParts: readonly FuzzPart[] = [fuzzHttp, fuzzBodies, fuzzStreams, fuzzYaml]
