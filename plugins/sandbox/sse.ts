/** How the vendors write events. */

/** `data: {...}`, without a name. */
export const dataEvent = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`

/** `event:` repeats the `type` of the JSON. */
export const namedEvent = (data: { readonly type: string; readonly [field: string]: unknown }): string =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
