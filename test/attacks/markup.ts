/** Finds what a browser would run in a page. */

interface Tag {
  readonly name: string
  readonly attributes: readonly { readonly name: string; readonly value: string }[]
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', colon: ':', Tab: '\t' }

const decode = (text: string): string =>
  text.replaceAll(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));?/gi, (whole, hex?: string, decimal?: string, name?: string) =>
    name === undefined
      ? String.fromCodePoint(Number.parseInt(hex ?? decimal ?? '', hex ? 16 : 10))
      : (entities[name] ?? whole),
  )

/** Every start tag of the page as the tokenizer of HTML reads it: a quote ends only the value that it began. */
const tagsOf = (html: string): Tag[] =>
  [...html.matchAll(/<([a-z][^\s/>]*)((?:"[^"]*"|'[^']*'|[^>"'])*)>/gi)].map(([, name = '', rest = '']) => ({
    name: name.toLowerCase(),
    attributes: [...rest.matchAll(/([^\s"'>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]*)))?/g)].map(
      ([, attribute = '', double, single, bare]) => ({
        name: attribute.toLowerCase(),
        value: decode(double ?? single ?? bare ?? ''),
      }),
    ),
  }))

const urlAttributes = new Set(['href', 'src', 'action', 'formaction', 'xlink:href', 'data', 'poster'])

/**
 * Scripts and styles in the page itself, handlers, URLs that run code, and elements that load or embed from elsewhere.
 */
export const findActiveMarkup = (html: string, origin: string): string[] =>
  tagsOf(html).flatMap((tag) => [
    ...tag.attributes
      .filter(({ name, value }) => isActive(name, value))
      .map(({ name, value }) => `<${tag.name} ${name}="${value}">`),
    ...(isInline(tag) ? [`<${tag.name}>`] : []),
    ...(isForeign(tag, origin) ? [`<${tag.name}> of another origin`] : []),
  ])

const isActive = (name: string, value: string): boolean =>
  name.startsWith('on') ||
  name === 'style' ||
  name === 'srcdoc' ||
  (urlAttributes.has(name) && /^[\s\p{Cc}]*(javascript|data|vbscript):/iu.test(value))

/** A block of JSON is not run. */
const isInline = ({ name, attributes }: Tag): boolean =>
  (name === 'style' || (name === 'script' && attributes.every((attribute) => attribute.name !== 'src'))) &&
  attributes.every((attribute) => attribute.name !== 'type' || !/^application\/(ld\+)?json$/.test(attribute.value))

const isForeign = ({ name, attributes }: Tag, origin: string): boolean =>
  /^(script|img|iframe|object|embed|link|form|base)$/.test(name) &&
  attributes.some(
    (attribute) =>
      urlAttributes.has(attribute.name) &&
      URL.canParse(attribute.value, origin) &&
      new URL(attribute.value, origin).origin !== new URL(origin).origin,
  )
