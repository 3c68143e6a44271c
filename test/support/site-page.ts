/** The structure of a page, read from its HTML: forms, links, data attributes and text. */

export interface Form {
  readonly method: string
  readonly action: string
  /** The fields as they would be sent unchanged. */
  readonly fields: Readonly<Record<string, string>>
}

export interface Page {
  readonly status: number
  readonly headers: Headers
  readonly html: string
  /** Path and query of the last request. */
  readonly path: string
  /** Method and address of each request that led here. */
  readonly visited: readonly string[]
  /** Which page it is: `data-page` of its main landmark. */
  readonly name: string
  /** All visible text, white space collapsed. */
  readonly text: string
  /** The code of the error that the page reports: `data-problem` of its alert. */
  readonly problem: string | undefined
  /** The code of the success that the page reports: `data-notice` of its status message. */
  readonly notice: string | undefined
  /** The address that the page refreshes to by itself. */
  readonly continuesTo: string | undefined
  /** The addresses of all links. */
  readonly links: readonly string[]
  /** The values of a data attribute in document order; `name` is without `data-`. */
  data(name: string): readonly string[]
  /** The form with this action and with all of these field values. Throws when the page has none. */
  form(action: string, having?: Readonly<Record<string, string>>): Form
  /** Whether the page has that form. */
  hasForm(action: string, having?: Readonly<Record<string, string>>): boolean
}

interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export function readPage({ status, headers, text: html }: Reply, path: string, visited: readonly string[]): Page {
  const forms = [...html.matchAll(/<form\b([^>]*)>(.*?)<\/form>/gs)].map(([, tag = '', inside = '']) =>
    readForm(tag, inside),
  )
  const data = (name: string) => valuesOf(html, `data-${name}`)
  const findForm = (action: string, having: Readonly<Record<string, string>> = {}) =>
    forms.find(
      (form) => form.action === action && Object.entries(having).every(([name, value]) => form.fields[name] === value),
    )
  return {
    status,
    headers,
    html,
    path,
    visited: [...visited],
    name: data('page')[0] ?? '',
    text: readText(/<main\b[^>]*>(.*)<\/main>/s.exec(html)?.[1] ?? html),
    problem: codeOf(html, 'alert', 'data-problem'),
    notice: codeOf(html, 'status', 'data-notice'),
    continuesTo: valuesOf(html, 'content', 'meta')
      .find((value) => value.startsWith('0;url='))
      ?.slice(6),
    links: valuesOf(html, 'href', 'a'),
    data,
    form: (action, having) => {
      const form = findForm(action, having)
      if (form) return form
      throw new Error(
        `${path} (${status}) has no form for ${action}: ${forms.map(({ action: known }) => known).join(', ')}`,
      )
    },
    hasForm: (action, having) => findForm(action, having) !== undefined,
  }
}

/** The value of the data attribute on the first element that has it and this role. */
const codeOf = (html: string, role: string, attribute: string): string | undefined =>
  [...html.matchAll(new RegExp(`<\\w+\\b([^>]*\\srole="${role}"[^>]*)>`, 'g'))]
    .map(([, tag = '']) => readAttribute(tag, attribute))
    .find((code) => code !== '')

const valuesOf = (html: string, attribute: string, element = '\\w+'): string[] =>
  [...html.matchAll(new RegExp(`<${element}\\b([^>]*)>`, 'g'))]
    .filter(([, tag = '']) => new RegExp(`(?:^|\\s)${attribute}="`).test(tag))
    .map(([, tag = '']) => readAttribute(tag, attribute))

function readForm(tag: string, inside: string): Form {
  const inputs = [...inside.matchAll(/<input\b([^>]*)>/g)].map(([, attributes = '']) => attributes)
  const sent = inputs.filter((input) => !/type="(checkbox|radio)"/.test(input) || /\bchecked\b/.test(input))
  const selects = [...inside.matchAll(/<select\b([^>]*)>(.*?)<\/select>/gs)].map(
    ([, attributes = '', options = '']) => {
      const all = [...options.matchAll(/<option\b([^>]*)>/g)].map(([, option = '']) => option)
      const option = all.find((candidate) => /\bselected\b/.test(candidate)) ?? all[0] ?? ''
      return [readAttribute(attributes, 'name'), readAttribute(option, 'value')] as const
    },
  )
  const named = sent.map((input) => [readAttribute(input, 'name'), readAttribute(input, 'value')] as const)
  return {
    method: readAttribute(tag, 'method').toUpperCase() || 'GET',
    action: readAttribute(tag, 'action'),
    fields: Object.fromEntries([...named, ...selects].filter(([name]) => name !== '')),
  }
}

const readAttribute = (tag: string, name: string): string =>
  decode(new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(tag)?.[1] ?? '')

const readText = (html: string): string =>
  decode(html.replaceAll(/<[^>]+>/g, ' '))
    .replaceAll(/\s+/g, ' ')
    .trim()

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
const decode = (text: string): string =>
  text.replaceAll(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => entities[name] ?? '')
