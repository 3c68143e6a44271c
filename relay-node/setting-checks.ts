/** The checks of single settings. */

export interface Check {
  readonly value: string | undefined
  readonly isValid: (text: string) => boolean
  /** The message after the name. It never contains the value, which may be a secret. */
  readonly problem: string
}

export type Environment = Readonly<Record<string, string | undefined>>

export const isHttpUrl = (text: string) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)

export const isBetween = (min: number, max: number) => (text: string) =>
  text.trim() !== '' && Number(text) >= min && Number(text) <= max

/** The text of a secret that is sent in a header. */
export const isHeaderText = (text: string) => /^[\x21-\x7e]+$/.test(text)
export const headerTextProblem = 'contains characters that are not allowed in a header'
