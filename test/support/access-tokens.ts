/** Tokens that look like the api's and are signed by nobody: the site reads only when one says that it is over. */

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** @param secondsLeft until it is over by its own word; less than none when it is. */
export const looksLikeAccessToken = (secondsLeft: number, id = 'somebody'): string =>
  [part({ alg: 'HS256', typ: 'at+jwt' }), part({ sub: id, exp: Date.now() / 1000 + secondsLeft }), 'c2lnbmF0dXJl'].join(
    '.',
  )
