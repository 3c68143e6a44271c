/** The cookie jar of a browser, as far as the site uses cookies. */

interface StoredCookie {
  readonly name: string
  readonly value: string
  readonly path: string
  readonly sameSite: string
  readonly httpOnly: boolean
  /** The attributes as they were set. */
  readonly attributes: string
}

export class CookieJar {
  readonly #cookies = new Map<string, StoredCookie>()

  /** Applies the Set-Cookie headers of a reply. Throws on a cookie that a browser would reject. */
  store(url: URL, setCookies: readonly string[]): void {
    for (const line of setCookies) {
      const [pair = '', ...attributes] = line.split(/;\s*/)
      const [name, value] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]
      const attribute = (wanted: string) =>
        attributes.find((text) => text.toLowerCase().split('=')[0] === wanted)?.split('=')[1]
      const has = (wanted: string) => attributes.some((text) => text.toLowerCase().split('=')[0] === wanted)
      if (has('domain')) throw new Error(`cookie with a Domain attribute: ${line}`)
      if (has('secure') && url.protocol !== 'https:' && url.hostname !== 'localhost')
        throw new Error(`Secure cookie over plain HTTP: ${line}`)
      const path = attribute('path') ?? '/'
      const key = `${name} ${path}`
      if (Number(attribute('max-age') ?? 1) <= 0) this.#cookies.delete(key)
      else
        this.#cookies.set(key, {
          name,
          value,
          path,
          sameSite: attribute('samesite') ?? 'Lax',
          httpOnly: has('httponly'),
          attributes: attributes.join('; '),
        })
    }
  }

  /** @param strict whether the request comes from the same site, so that Strict cookies are sent too. */
  headerFor(url: URL, { strict }: { strict: boolean }): string | undefined {
    const sent = [...this.#cookies.values()]
      .filter(({ path, sameSite }) => covers(path, url.pathname) && (strict || sameSite.toLowerCase() !== 'strict'))
      .sort((a, b) => b.path.length - a.path.length)
    return sent.length > 0 ? sent.map(({ name, value }) => `${name}=${value}`).join('; ') : undefined
  }

  /** Stores a cookie as if the site had set it. */
  set(name: string, value: string, path = '/'): void {
    this.#cookies.set(`${name} ${path}`, { name, value, path, sameSite: 'Strict', httpOnly: true, attributes: '' })
  }

  remove(name: string): void {
    for (const [key, cookie] of this.#cookies) if (cookie.name === name) this.#cookies.delete(key)
  }

  /** The value of the cookie, whatever its path. */
  get(name: string): string | undefined {
    return this.#find(name)?.value
  }

  /** The attributes of the cookie as they were set. */
  attributesOf(name: string): string | undefined {
    return this.#find(name)?.attributes
  }

  #find(name: string): StoredCookie | undefined {
    return [...this.#cookies.values()].find((cookie) => cookie.name === name)
  }
}

const covers = (cookiePath: string, path: string): boolean =>
  path === cookiePath || path.startsWith(cookiePath.endsWith('/') ? cookiePath : `${cookiePath}/`)
