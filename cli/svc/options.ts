/** Options that several commands have, and how their values are checked. */
import { InvalidArgumentError, Option } from 'commander'
import { closest, distance } from 'fastest-levenshtein'
import { isUuid } from '../../domain/uuid.ts'

/** Options of all commands, and the one of those that ask. */
export interface GlobalOptions {
  readonly api?: string
  readonly passwordFile?: string
  readonly json?: true
  readonly yes?: true
}

export interface ChangeOptions {
  readonly reason?: string
}

export type ReasonOptions = Required<ChangeOptions>

/** More differences are no misspelling. */
const misspellingMax = 3

/** The one of the values that a misspelt word is closest to; undefined when none is close. */
function findSimilar(text: string, values: readonly string[]): string | undefined {
  const similar = closest(text, [...values])
  return distance(text, similar) <= misspellingMax ? similar : undefined
}

/** An option that takes one of some values, and names the closest one for a misspelt value. */
export function choiceOption(flags: string, description: string, values: readonly string[]): Option {
  const parse = (text: string): string => {
    if (values.includes(text)) return text
    const similar = findSimilar(text, values)
    const suggestion = similar === undefined ? '' : ` (Did you mean ${similar}?)`
    throw new InvalidArgumentError(`Allowed values are ${values.join(', ')}.${suggestion}`)
  }
  // After `choices`, which lists the values in the help and has a parser of its own.
  return new Option(flags, description).choices(values).argParser(parse)
}

/** Of an event or a session. */
export const exampleId = '5d3f0c62-8a1e-4b7d-9c05-2f6e1a7b4d90'

export function parseId(text: string): string {
  if (isUuid(text)) return text.toLowerCase()
  throw new InvalidArgumentError(`It is not an id, such as ${exampleId}.`)
}

/** An email address or an id, with which a command names an account. */
export function parseAccount(text: string): string {
  if (text.includes('@')) return text
  if (isUuid(text)) return text.toLowerCase()
  throw new InvalidArgumentError('It is neither an email address nor the id of an account.')
}

/** @param description what the lists of an account are limited to. */
export const accountOption = (description: string): Option =>
  new Option('--user <account>', `${description}: its email address or id`).argParser(parseAccount)

export const parseWholeNumber =
  (min: number, max: number) =>
  (text: string): number => {
    const number = Number(text)
    if (/^\d+$/.test(text) && number >= min && number <= max) return number
    throw new InvalidArgumentError(`It is not a whole number from ${min} to ${max}.`)
  }

/** A time with its offset from UTC, as svc prints it too, or a date, which begins at midnight UTC. */
export function parseTime(argument: string): string {
  const text = argument.replace(/^(\S+) (\S+) UTC$/, '$1T$2Z')
  const isTime = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/.test(text)
  const time = new Date(text)
  if (isTime && !Number.isNaN(time.getTime())) return time.toISOString()
  throw new InvalidArgumentError('It is not a time such as 2027-01-31 or 2027-01-31T18:00:00Z.')
}

export const cursorOption = new Option('--cursor <cursor>', 'show the page that follows this one')
export const allOption = new Option('--all', 'show all pages').conflicts('cursor')

export const reasonOption = new Option('--reason <text>', 'why, for the audit trail')
export const requiredReasonOption = new Option('--reason <text>', 'why, for the audit trail').makeOptionMandatory()
export const confirmationOption = new Option('-y, --yes', 'do not ask for confirmation on a terminal')

/** Of commands that end or take away something. */
export const destructiveOptions = [requiredReasonOption, confirmationOption]
