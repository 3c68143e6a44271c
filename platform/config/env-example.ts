/** The text of `.env.example`: every variable that docker-compose.yml reads from `.env`. */
import type { z } from 'zod'
import { type ComposeVariable, composeDefaults, composeVariables, fixedVariables } from './compose-variables.ts'
import { type VariableReference, variableSections } from './variable-reference.ts'
import { Variables } from './variables.ts'

const head = `# Variables of docker-compose.yml. Copy this file to .env, which only its owner may read (chmod 600), and set what differs.
# \`npm run generate\` writes it from platform/config/. A line in comments shows the default; an empty value counts as not set.
# Secrets are files in deploy/secrets/ and not here (deploy/make-secrets.sh). Details: docs/operating.md, "Configuration".
`

export function envExample(): string {
  const compose = Object.entries(composeVariables).map(([name, { text }]) => entry(name, text))
  const sections = Object.entries(variableSections).map(([title, variables]) => {
    const passed = Object.entries<VariableReference>(variables).filter(
      ([name]) => !(name in fixedVariables || name in composeVariables),
    )
    return section(
      title,
      passed.map(([name, { text, readers }]) => entry(name, `Read by: ${readers.join(', ')}. ${text}`)),
    )
  })
  return [head, section('Host names, networks and images', compose), ...sections.filter((text) => text !== '')].join(
    '\n',
  )
}

const section = (title: string, entries: readonly string[]): string =>
  entries.length === 0 ? '' : `# ---- ${title} ----\n\n${entries.join('\n')}`

const entry = (name: string, text: string): string => `${wrap(text)}#${name}=${defaultOf(name) ?? ''}\n`

const columnsMax = 120

/** The text as comment lines of at most 120 columns. */
function wrap(text: string): string {
  const lines = ['#']
  for (const word of text.split(' ')) {
    const line = `${lines.at(-1)} ${word}`
    if (line.length <= columnsMax) lines[lines.length - 1] = line
    else lines.push(`# ${word}`)
  }
  return `${lines.join('\n')}\n`
}

/** The value that a program has when `.env` does not set the variable, as text; undefined for none. */
export function defaultOf(name: string): string | undefined {
  const compose = (composeVariables as Readonly<Record<string, ComposeVariable>>)[name]
  if (compose) return compose.default
  return composeDefaults[name] ?? schemaDefault((Variables.shape as Record<string, z.core.$ZodType>)[name])
}

interface SchemaDefinition {
  readonly type: string
  readonly defaultValue?: unknown
  readonly in?: z.core.$ZodType
  readonly innerType?: z.core.$ZodType
}

function schemaDefault(schema: z.core.$ZodType | undefined): string | undefined {
  if (!schema) return undefined
  const def: SchemaDefinition = schema._zod.def
  if (def.type === 'default') return String(def.defaultValue)
  return def.type === 'pipe' || def.type === 'optional' ? schemaDefault(def.in ?? def.innerType) : undefined
}
