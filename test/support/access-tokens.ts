/** Unsigned tokens in the format of access tokens, of which the site reads only the expiry. */

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** @param secondsLeft until it expires; negative for an expired token. */
export const looksLikeAccessToken = (secondsLeft: number, id = 'a-user'): string =>
  [part({ alg: 'HS256', typ: 'at+jwt' }), part({ sub: id, exp: Date.now() / 1000 + secondsLeft }), 'c2lnbmF0dXJl'].join(
    '.',
  )
