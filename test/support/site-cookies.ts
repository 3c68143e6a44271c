/** What a browser does with cookies, as far as our site uses them. */

interface Kept {
  readonly name: string
  readonly value: string
  readonly path: string
  readonly sameSite: string
  readonly httpOnly: boolean
  /** The attributes as they came. */
  readonly attributes: string
}

export class CookieJar {
  readonly #kept = new Map<string, Kept>()

  /** Takes what an answer sets; an age of none or less removes. Fails on a cookie that a browser would not keep. */
  take(url: URL, setCookies: readonly string[]): void {
    for (const line of setCookies) {
      const [pair = '', ...attributes] = line.split(/;\s*/)
      const [name, value] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]
      const attribute = (wanted: string) =>
        attributes.find((one) => one.toLowerCase().split('=')[0] === wanted)?.split('=')[1]
      const has = (wanted: string) => attributes.some((one) => one.toLowerCase().split('=')[0] === wanted)
      if (has('domain')) throw new Error(`a cookie for other hosts too: ${line}`)
      if (has('secure') && url.protocol !== 'https:' && url.hostname !== 'localhost')
        throw new Error(`a Secure cookie over plain HTTP: ${line}`)
      const path = attribute('path') ?? '/'
      const key = `${name} ${path}`
      if (Number(attribute('max-age') ?? 1) <= 0) this.#kept.delete(key)
      else
        this.#kept.set(key, {
          name,
          value,
          path,
          sameSite: attribute('samesite') ?? 'Lax',
          httpOnly: has('httponly'),
          attributes: attributes.join('; '),
        })
    }
  }

  /** @param strict whether our own pages ask: only then Strict cookies go along. */
  headerFor(url: URL, { strict }: { strict: boolean }): string | undefined {
    const going = [...this.#kept.values()]
      .filter(({ path, sameSite }) => covers(path, url.pathname) && (strict || sameSite.toLowerCase() !== 'strict'))
      .sort((one, other) => other.path.length - one.path.length)
    return going.length > 0 ? going.map(({ name, value }) => `${name}=${value}`).join('; ') : undefined
  }

  /** Puts one there as if the site had set it. */
  set(name: string, value: string, path = '/'): void {
    this.#kept.set(`${name} ${path}`, { name, value, path, sameSite: 'Strict', httpOnly: true, attributes: '' })
  }

  remove(name: string): void {
    for (const [key, kept] of this.#kept) if (kept.name === name) this.#kept.delete(key)
  }

  /** The value of the cookie, whatever its path. */
  get(name: string): string | undefined {
    return this.#find(name)?.value
  }

  /** Everything behind its value, as it was set. */
  attributesOf(name: string): string | undefined {
    return this.#find(name)?.attributes
  }

  #find(name: string): Kept | undefined {
    return [...this.#kept.values()].find((kept) => kept.name === name)
  }
}

const covers = (cookiePath: string, path: string): boolean =>
  path === cookiePath || path.startsWith(cookiePath.endsWith('/') ? cookiePath : `${cookiePath}/`)
