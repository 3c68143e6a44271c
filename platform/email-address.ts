/**
 * Email addresses, as people type them and as providers vouch for them. One rule for both: accounts are found by comparing
 * addresses, so two texts that are compared as equal have to be the same mailbox.
 */

const charactersMax = 254

export type ParsedEmailAddress = { readonly address: string } | { readonly problem: string }

/** The address in the form that is stored and compared (trimmed, NFC), or why the text is not accepted as one. */
export function parseEmailAddress(text: string): ParsedEmailAddress {
  const trimmed = text.trim()
  const address = trimmed.normalize('NFC')
  if (address.length > charactersMax) return { problem: `is longer than ${charactersMax} characters` }
  // Before normalisation too, which replaces some of these characters, and after it, since it composes others.
  if ([...trimmed, ...address].some(isComparedAsAscii)) return { problem: 'is not an email address' }
  return /^[^\s@\p{C}]{1,64}@[^\s@\p{C}]+\.[^\s@\p{C}]+$/u.test(address)
    ? { address }
    : { problem: 'is not an email address' }
}

/**
 * Whether normalisation or comparison without case turns the character into an ASCII one. Mail for such an address goes
 * elsewhere: the Kelvin sign becomes a k and İ an i, but another mailbox than the one with the plain letter may have it.
 */
const isComparedAsAscii = (character: string): boolean =>
  !isAscii(character) && (hasAscii(character.normalize('NFC')) || hasAscii(character.toLowerCase()))

const isAscii = (character: string): boolean => (character.codePointAt(0) ?? 0) < 0x80
const hasAscii = (text: string): boolean => [...text].some(isAscii)
