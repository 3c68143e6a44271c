/** Reads XML as strictly as feed readers do, for documents without comments, CDATA and document types. */

export interface XmlElement {
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
  readonly children: XmlElement[]
  text: string
}

const tokens = /<\?xml version="1\.0" encoding="utf-8"\?>|<(\/?)([a-z]+)((?: [a-z:]+="[^"<]*")*)(\/?)>|([^<]+)/gy
const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }

function readText(text: string): string {
  if (/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/u.test(text))
    throw new Error('the document has a character that XML has not')
  return text.replaceAll(/&([^;]*);?/g, (whole, name: string) => {
    const character = entities[name]
    if (character === undefined || !whole.endsWith(';')) throw new Error(`${whole.slice(0, 10)} is no entity`)
    return character
  })
}

/** @returns the root. Throws when the document is not well-formed. */
export function parseXml(document: string): XmlElement {
  const top: XmlElement = { name: '', attributes: {}, children: [], text: '' }
  const open = [top]
  let position = 0
  for (const [token, closing, name = '', attributes = '', isEmpty, text] of document.matchAll(tokens)) {
    position += token.length
    const parent = open.at(-1) ?? top
    if (text !== undefined) parent.text += readText(text)
    else if (closing === '/') {
      if (open.pop()?.name !== name) throw new Error(`</${name}> closes another element`)
    } else if (name !== '') {
      const pairs = [...attributes.matchAll(/ ([a-z:]+)="([^"]*)"/g)].map(([, key = '', value = '']) => [
        key,
        readText(value),
      ])
      const element = { name, attributes: Object.fromEntries(pairs), children: [], text: '' }
      parent.children.push(element)
      if (isEmpty !== '/') open.push(element)
    }
  }
  const [root, ...others] = top.children
  if (position !== document.length || open.length !== 1 || !root || others.length > 0)
    throw new Error(`the document is not well-formed after ${position} characters`)
  return root
}

export const childOf = (element: XmlElement | undefined, name: string): XmlElement => {
  const child = element?.children.find((each) => each.name === name)
  if (!child) throw new Error(`<${element?.name}> has no <${name}>`)
  return child
}

export const childrenOf = (element: XmlElement, name: string): XmlElement[] =>
  element.children.filter((each) => each.name === name)
