/**
 * Email addresses as they may be shown where they cannot be erased with their account, such as in workflow histories.
 */

const mask = '•••'

/**
 * The first character of the local part and of the domain, and the top-level domain: `s•••@e•••.com`. Enough to
 * recognise an address, not to write to it. Characters that Markdown interprets are left out.
 */
export function maskEmail(address: string): string {
  const at = address.lastIndexOf('@')
  const domain = address.slice(at + 1)
  const dot = domain.lastIndexOf('.')
  const ending = dot > 0 ? /^\.[a-z0-9-]{2,24}$/i.exec(domain.slice(dot))?.[0] : undefined
  return `${firstCharacter(address.slice(0, Math.max(0, at)))}${mask}@${firstCharacter(domain)}${mask}${ending ?? ''}`
}

/** The same for an account, which may have no address. */
export const maskAccountEmail = (address: string | null): string | null =>
  address === null ? null : maskEmail(address)

const firstCharacter = (text: string): string => /^[\p{L}\p{N}]/u.exec(text)?.[0] ?? ''
