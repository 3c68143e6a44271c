/** What a person finds on a page of the site, read from its HTML. */

export interface Form {
  readonly method: string
  readonly action: string
  /** What would be sent if nobody filled anything in. */
  readonly fields: Readonly<Record<string, string>>
}

export interface Page {
  readonly status: number
  readonly headers: Headers
  readonly html: string
  /** Path and query where the browser ended. */
  readonly path: string
  /** Every step to here. */
  readonly visited: readonly string[]
  /** The heading. */
  readonly heading: string
  /** All text that can be seen, blanks folded. */
  readonly text: string
  /** What alerts say, if there are any. */
  readonly problem: string | undefined
  /** The address that the page leads on to by itself. */
  readonly leadsTo: string | undefined
  /** The form with this action, and with all of these fields. Fails when there is none. */
  form(action: string, having?: Readonly<Record<string, string>>): Form
}

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export function readPage({ status, headers, text: html }: Answer, path: string, visited: readonly string[]): Page {
  const forms = [...html.matchAll(/<form\b([^>]*)>(.*?)<\/form>/gs)].map(([, tag = '', inside = '']) =>
    formOf(tag, inside),
  )
  const leads = /<meta http-equiv="refresh" content="0;url=([^"]*)"/.exec(html)?.[1]
  const alert = /<[^>]+role="alert"[^>]*>(.*?)<\//s.exec(html)?.[1]
  return {
    status,
    headers,
    html,
    path,
    visited: [...visited],
    heading: textOf(/<h1\b[^>]*>(.*?)<\/h1>/s.exec(html)?.[1] ?? ''),
    text: textOf(/<main\b[^>]*>(.*)<\/main>/s.exec(html)?.[1] ?? html),
    problem: alert === undefined ? undefined : textOf(alert),
    leadsTo: leads === undefined ? undefined : decoded(leads),
    form: (action, having = {}) => {
      const found = forms.find(
        (form) =>
          form.action === action && Object.entries(having).every(([name, value]) => form.fields[name] === value),
      )
      if (found) return found
      throw new Error(`${path} (${status}) has no form for ${action}: ${forms.map((form) => form.action).join(', ')}`)
    },
  }
}

function formOf(tag: string, inside: string): Form {
  const inputs = [...inside.matchAll(/<input\b([^>]*)>/g)].map(([, attributes = '']) => attributes)
  const chosen = inputs.filter((input) => !/type="(checkbox|radio)"/.test(input) || /\bchecked\b/.test(input))
  const selects = [...inside.matchAll(/<select\b([^>]*)>(.*?)<\/select>/gs)].map(
    ([, attributes = '', options = '']) => {
      const all = [...options.matchAll(/<option\b([^>]*)>/g)].map(([, option = '']) => option)
      const option = all.find((one) => /\bselected\b/.test(one)) ?? all[0] ?? ''
      return [attribute(attributes, 'name'), attribute(option, 'value')] as const
    },
  )
  const named = chosen.map((input) => [attribute(input, 'name'), attribute(input, 'value')] as const)
  return {
    method: attribute(tag, 'method').toUpperCase() || 'GET',
    action: attribute(tag, 'action'),
    fields: Object.fromEntries([...named, ...selects].filter(([name]) => name !== '')),
  }
}

const attribute = (tag: string, name: string): string =>
  decoded(new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(tag)?.[1] ?? '')

const textOf = (html: string): string =>
  decoded(html.replaceAll(/<[^>]+>/g, ' '))
    .replaceAll(/\s+/g, ' ')
    .trim()

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
const decoded = (text: string): string =>
  text.replaceAll(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => entities[name] ?? '')
