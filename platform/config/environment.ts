/** Reads environment variables by a schema, and reports all problems together. */
import { readFileSync } from 'node:fs'
import type { z } from 'zod'

export type Environment = Readonly<Record<string, string | undefined>>

/** The variables of this process, unchecked. */
export const processEnvironment = (): Environment => ({ ...process.env })

/** Every problem in the environment, one line each, ready to be shown to the person who started the process. */
export class ConfigError extends Error {
  override name = 'ConfigError'
  constructor(readonly problems: readonly string[]) {
    super(
      `The configuration has ${problems.length} problem${problems.length === 1 ? '' : 's'}:\n${problems.map((line) => `  - ${line}`).join('\n')}`,
    )
  }
}

/**
 * Reads the variables of a schema. `NAME_FILE` names a file that holds the value of `NAME`; a
 * byte order mark and one line end at its end are no part of it. An empty value counts as unset.
 * @param findConflicts lists problems that only a combination of variables has. Called when each variable by itself is
 * valid.
 * @throws ConfigError
 */
export function readVariables<Schema extends z.ZodObject>(
  schema: Schema,
  env: Environment,
  findConflicts: (values: z.infer<Schema>) => Iterable<string> = () => [],
): z.infer<Schema> {
  const { texts, problems } = readTexts(env, Object.keys(schema.shape))
  const parsed = schema.safeParse(texts, { reportInput: true })
  for (const issue of parsed.error?.issues ?? []) {
    const name = String(issue.path[0])
    if (problems.some((line) => line.startsWith(`${name}_FILE `))) continue
    problems.push(texts[name] === undefined ? `${name} is not set` : describeIssue(issue))
  }
  if (parsed.success) problems.push(...findConflicts(parsed.data))
  if (problems.length > 0 || !parsed.success) throw new ConfigError(problems)
  return parsed.data
}

/** One line with the place of the problem: `SVC_REGIONS[1].aws.subnet_ids is missing`. It never contains a value. */
function describeIssue(issue: z.core.$ZodIssue): string {
  const place = issue.path.map(formatPathStep).join('')
  if (issue.code === 'unrecognized_keys') return `${place} has unknown keys: ${issue.keys.join(', ')}`
  if (issue.code === 'invalid_type' && issue.input === undefined) return `${place} is missing`
  // A sentence of zod, not one of our own schemas.
  const isSentence = /^[A-Z]/.test(issue.message) && issue.path.length > 1
  return isSentence ? `${place} is not valid: ${issue.message}` : `${place} ${issue.message}`
}

const formatPathStep = (step: PropertyKey, index: number): string =>
  typeof step === 'number' ? `[${step}]` : `${index === 0 ? '' : '.'}${String(step)}`

function readTexts(env: Environment, names: readonly string[]) {
  const texts: Record<string, string> = {}
  const problems: string[] = []
  for (const name of names) {
    const value = env[name]
    const file = env[`${name}_FILE`]
    if (value && file) problems.push(`${name} and ${name}_FILE are both set: keep one`)
    else if (value) texts[name] = value
    else if (file) {
      try {
        texts[name] = readFileSync(file, 'utf8')
          .replace(/^\uFEFF/, '')
          .replace(/\r?\n$/, '')
        const control = describeControlCharacter(texts[name])
        if (control)
          problems.push(`${name}_FILE names ${file}, whose text contains ${control}: write the value alone into it`)
      } catch (error) {
        problems.push(`${name}_FILE names ${file}, which can't be read: ${(error as Error).message}`)
      }
    }
  }
  return { texts, problems }
}

/**
 * A value of several lines, such as JSON or a certificate, contains line ends and tabs. Others are left behind by an
 * editor or by an encoding other than UTF-8, and so is a byte order mark that is not at the beginning.
 */
function describeControlCharacter(text: string): string | undefined {
  if (/^[^\n]*[\r\n]$/.test(text)) return 'more than one line end'
  const found = /(?![\t\n\r])[\p{Cc}\uFEFF\uFFFD]/u.exec(text)?.[0]
  return found && `U+${found.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}, a character that no value has`
}

/** Freezes an object and everything in it. */
export function deepFreeze<T extends object>(value: T): Readonly<T> {
  for (const inner of Object.values(value)) if (typeof inner === 'object' && inner !== null) deepFreeze(inner)
  return Object.freeze(value)
}
