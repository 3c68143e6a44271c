/** Finds secrets in texts, also when they are encoded. */

/**
 * The forms in which a secret could be stored or logged. Base64 in the middle of other bytes has other letters: not
 * found.
 */
const formsOf = (secret: string): readonly string[] => {
  const bytes = Buffer.from(secret)
  return [
    secret,
    encodeURIComponent(secret),
    JSON.stringify(secret).slice(1, -1),
    bytes.toString('base64').replace(/=+$/, ''),
    bytes.toString('base64url'),
    bytes.toString('hex'),
    bytes.toString('hex').toUpperCase(),
  ]
}

/**
 * @param secrets by their names.
 * @param places texts by the names of the places where they were found.
 * @returns `<name> in <place>` for each secret that a place contains.
 */
export function findSecrets(secrets: ReadonlyMap<string, string>, places: ReadonlyMap<string, string>): string[] {
  return [...secrets].flatMap(([name, secret]) => {
    if (secret.length < 8) throw new Error(`${name} is missing or too short to be searched`)
    const forms = formsOf(secret)
    return [...places]
      .filter(([, text]) => forms.some((form) => text.includes(form)))
      .map(([place]) => `${name} in ${place}`)
  })
}
