/** The files that list variables, as `npm run generate` writes them. */
import { composeVariables } from './compose-variables.ts'
import { localVariables } from './stack.ts'
import type { VariableDescription } from './variable.ts'
import { defaultOf, describeVariable, isRequired, toPlain, unitOf } from './variable-texts.ts'
import { sectionTitles, variables } from './variables.ts'

/** Each file with what makes its text from the one that it has. */
export const variableDocuments: readonly { readonly path: string; readonly render: (text: string) => string }[] = [
  { path: '.env.example', render: envExample },
  { path: 'docker-compose.yml', render: (text) => replaceVariables(text, composeSettings()) },
  { path: 'docs/operating.md', render: (text) => replaceVariables(text, variableTables()) },
]

/** Replaces the lines between those with `begin variables` and `end of variables`. */
function replaceVariables(text: string, lines: string): string {
  const [, head, tail] = /^(.*\bbegin variables\b[^\n]*\n).*?([^\n]*\bend of variables\b.*)$/s.exec(text) ?? []
  if (head === undefined || tail === undefined) throw new Error('the lines around the variables are missing')
  return `${head}\n${lines}\n${tail}`
}

type Entry = readonly [name: string, variable: VariableDescription]

const entriesOf = (described: Readonly<Record<string, VariableDescription>>): Entry[] => Object.entries(described)

interface Section {
  readonly title: string
  readonly entries: Entry[]
}

function listSections(): Section[] {
  const sections: Section[] = []
  for (const entry of entriesOf(variables)) {
    const title = (sectionTitles as Readonly<Record<string, string>>)[entry[0]]
    if (title !== undefined) sections.push({ title, entries: [] })
    sections.at(-1)?.entries.push(entry)
  }
  return sections
}

const envHead = `# Variables of docker-compose.yml. Copy this file to .env, which only its owner may read (chmod 600), and set what differs.
# \`npm run generate\` writes it from platform/config/. A line in comments shows the default; an empty value counts as not set.
# Secrets are files in deploy/secrets/ and not here (deploy/make-secrets.sh). Details: docs/operating.md, "Configuration".
`

/** Every variable that docker-compose.yml reads from `.env`. */
function envExample(): string {
  const inCompose = { title: 'Host names, networks and images', entries: entriesOf(composeVariables) }
  const sections = [inCompose, ...listSections()]
    .map(({ title, entries }) => ({ title, entries: entries.filter(([, variable]) => isPassedOn(variable)) }))
    .filter(({ entries }) => entries.length > 0)
  return [
    envHead,
    ...sections.map(({ title, entries }) => `# ---- ${title} ----\n\n${entries.map(formatEnvEntry).join('\n')}`),
  ].join('\n')
}

/** Whether docker-compose.yml gives the programs the value of `.env`. */
const isPassedOn = ({ compose }: VariableDescription): boolean => !compose || !('file' in compose || 'fixed' in compose)

function formatEnvEntry([name, variable]: Entry): string {
  const { readers, compose } = variable
  const text = [
    ...(readers.length === 0 ? [] : [`Read by: ${readers.join(', ')}.`]),
    toPlain(describeVariable(name, variable)),
    ...(compose && 'text' in compose ? [compose.text] : []),
  ].join(' ')
  const composeDefault = composeDefaultOf(variable)?.replace(/\$\{\w+:-([^}]*)\}/g, '$1')
  return `${toComment(text)}\n#${name}=${composeDefault ?? defaultOf(variable) ?? ''}\n`
}

const composeDefaultOf = ({ compose }: VariableDescription): string | undefined =>
  compose && 'default' in compose ? compose.default : undefined

/** Comment lines of at most 120 columns. */
const toComment = (text: string): string => text.replace(/(.{1,118})(?: |$)/g, '# $1\n').trimEnd()

/** The mappings of docker-compose.yml, what each contains besides its own variables, and the readers of these. */
const mappings = [
  { name: 'shared-settings', base: undefined, readers: ['api,worker,site'] },
  { name: 'settings', base: 'shared-settings', readers: ['api,worker'] },
  { name: 'worker-settings', base: 'settings', readers: ['worker'] },
  { name: 'api-settings', base: 'settings', readers: ['api', 'api,site'] },
  { name: 'site-settings', base: 'shared-settings', readers: ['site', 'api,site'] },
]

const composeSettings = (): string =>
  mappings
    .map(({ name, base, readers }) => {
      const settings = entriesOf(variables).filter(([, variable]) => readers.includes(variable.readers.join()))
      const lines = [...(base ? [`<<: *${base}`] : []), ...settings.flatMap(formatSetting)]
      return `x-${name}: &${name}\n${lines.map((line) => `  ${line}\n`).join('')}`
    })
    .join('\n')

function formatSetting([name, variable]: Entry): string[] {
  const { compose } = variable
  if (compose && 'file' in compose) return [`${name}_FILE: /run/secrets/${compose.file}`]
  return isPassedOn(variable) ? [`${name}: \${${name}:-${composeDefaultOf(variable) ?? ''}}`] : []
}

const variableTables = (): string =>
  [
    ...listSections(),
    { title: 'Only docker-compose.yml reads these', entries: entriesOf(composeVariables) },
    {
      title: 'Only `npm start`, the commands that use it (`demo`, `svc`) and the tests read these',
      entries: entriesOf(localVariables),
    },
  ]
    .map(({ title, entries }) => `**${title}**\n\n${formatTable(entries)}`)
    .join('\n')

/** Neighbours that differ in their name alone share a row. */
function formatTable(entries: readonly Entry[]): string {
  const rows: { labels: string[]; cells: string }[] = []
  for (const [name, variable] of entries) {
    const label = isRequired(variable) ? `**\`${name}\`**` : `\`${name}\``
    const cells = [variable.readers.join(', '), formatDefault(name, variable), describeVariable(name, variable)]
      .map((cell) => (cell === '' ? ' |' : ` ${cell.replaceAll('|', '\\|')} |`))
      .join('')
    const previous = rows.at(-1)
    if (previous?.cells === cells) previous.labels.push(label)
    else rows.push({ labels: [label], cells })
  }
  const lines = rows.map(({ labels, cells }) => `| ${labels.join(', ')} |${cells}\n`)
  return `| variable | read by | default | meaning |\n|---|---|---|---|\n${lines.join('')}`
}

function formatDefault(name: string, variable: VariableDescription): string {
  const isOfCompose = variable.readers.length === 0
  const value = (isOfCompose ? composeDefaultOf(variable) : undefined) ?? defaultOf(variable)
  return variable.default ?? (value === undefined ? '' : `\`${value}\`${unitOf(name)}`)
}
