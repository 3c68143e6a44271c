/**
 * Loads oidc-provider, which requires Node 22. In Node 20 it lacks only `URL.parse`, which is a line, and it warns of
 * the version each time that it is loaded.
 */

const isExpected = (text: unknown): boolean => String(text).includes('Unsupported runtime')

export async function loadProviderLibrary(): Promise<typeof import('oidc-provider')> {
  if (!('parse' in URL))
    Object.assign(URL, {
      parse: (url: string, base?: string) => (URL.canParse(url, base) ? new URL(url, base) : null),
    })
  const { console } = globalThis
  const { warn } = console
  console.warn = (...texts: unknown[]) => (isExpected(texts[0]) ? undefined : warn(...texts))
  try {
    return await import('oidc-provider')
  } finally {
    console.warn = warn
  }
}
