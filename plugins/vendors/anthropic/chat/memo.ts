/** What only the request knows, and the way back needs. */
export interface ChatMemo {
  /** The client's names of tools by the aliases that were sent. */
  readonly names: ReadonlyMap<string, string>
  /** The tool whose input is the content of the answer. */
  readonly answerTool?: string
}
