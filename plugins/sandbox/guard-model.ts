/** What a guard LLM says to a text: `safe`, or `unsafe` and the codes of what it found. */

const hazards: readonly (readonly [code: string, words: RegExp])[] = [
  ["S1", /\b(?:kill|murder)\b/i],
  ["S2", /\b(?:steal|counterfeit)\b/i],
  ["S9", /\b(?:bomb|explosive)\b/i],
  ["S10", /\bi hate (?:them|those people)\b/i],
  ["S11", /\bself-?harm\b/i],
  ["S12", /\bporn/i],
]

export const isGuardModel = (model: string): boolean => /llama-guard/i.test(model)

export const guardVerdict = (text: string): string => {
  const codes = hazards.filter(([, words]) => words.test(text)).map(([code]) => code)
  return codes.length === 0 ? "safe" : `unsafe\n${codes.join(",")}`
}
