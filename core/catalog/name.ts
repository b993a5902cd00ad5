/** The one rule of names: of models, overlays, organisations and members. */

export const plainName = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/
export const nameRule = "a name of at most 128 letters, digits, dots, colons, dashes and underscores"
