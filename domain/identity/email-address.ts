/**
 * Parses email addresses of users and of OAuth providers by the same rule. Accounts are found by comparing addresses,
 * so two addresses that compare as equal must belong to the same mailbox.
 */

const charactersMax = 254

export type ParsedEmailAddress = { readonly address: string } | { readonly problem: string }

/** The address in the form that is stored and compared (trimmed, NFC), or the problem with the text. */
export function parseEmailAddress(text: string): ParsedEmailAddress {
  const trimmed = text.trim()
  const address = trimmed.normalize('NFC')
  if (address.length > charactersMax) return { problem: `is longer than ${charactersMax} characters` }
  // Checked before the normalisation, which replaces some of these characters, and after it, which composes others.
  if ([...trimmed, ...address].some(isComparedAsAscii)) return { problem: 'is not an email address' }
  return /^[^\s@\p{C}]{1,64}@[^\s@\p{C}]+\.[^\s@\p{C}]+$/u.test(address)
    ? { address }
    : { problem: 'is not an email address' }
}

/**
 * Whether normalisation or a case-insensitive comparison turns the character into an ASCII character. For example the
 * Kelvin sign becomes `k`, although the two addresses may belong to different mailboxes.
 */
const isComparedAsAscii = (character: string): boolean =>
  !isAscii(character) && (hasAscii(character.normalize('NFC')) || hasAscii(character.toLowerCase()))

const isAscii = (character: string): boolean => (character.codePointAt(0) ?? 0) < 0x80
const hasAscii = (text: string): boolean => [...text].some(isAscii)
