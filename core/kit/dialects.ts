/** What the dialects have in common. */

/** Some texts of the specification read `type - message`: the part after the dash is the message of an SDK's error. */
export const afterDash = (message: string): string => message.replace(/^[a-z]+(?:_[a-z]+)* - /, "")
