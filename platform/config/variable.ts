/**
 * What a variable of the environment is: its kind of value, its default, and the one description that all documents are
 * made of.
 */
import type { z } from 'zod'

export type ProgramName = 'api' | 'worker' | 'site'

export interface VariableDescription {
  readonly readers: readonly ProgramName[]
  /** Sentences in Markdown: what it does, and what follows from a wrong value. Links are relative to docs/. */
  readonly text: string
  /** Markdown, where the default depends on other variables or is chosen elsewhere. */
  readonly default?: string
  readonly isSecret?: boolean
  /** A shell command that prints a good value. */
  readonly generate?: string
  /** How docker-compose.yml sets it. Without this the file passes on what `.env` has. */
  readonly compose?: ComposeUse
}

export type ComposeUse =
  /** What the file sets when `.env` does not, in its syntax, where that is not the default of the programs. */
  | { readonly default: string; readonly text?: string }
  /** The secret file of this name holds the value. */
  | { readonly file: string }
  /** Something else sets it. */
  | { readonly fixed: string }

export interface Variable<Schema extends z.ZodType = z.ZodType> extends VariableDescription {
  readonly schema: Schema
}

type Details = Omit<VariableDescription, 'readers' | 'text'>

/** A variable that the configuration of these programs contains. */
export const readBy =
  (...readers: ProgramName[]) =>
  <Schema extends z.ZodType>(schema: Schema, text: string, details: Details = {}): Variable<Schema> => ({
    schema,
    readers,
    text,
    ...details,
  })

type SchemasOf<Described> = {
  [Name in keyof Described as Described[Name] extends Variable ? Name : never]: Described[Name] extends Variable<
    infer Schema
  >
    ? Schema
    : never
}

/** The schemas by name. Leaves out variables that a library reads itself. */
export const schemasOf = <Described extends Readonly<Record<string, VariableDescription>>>(variables: Described) =>
  Object.fromEntries(
    Object.entries(variables).flatMap(([name, variable]) => ('schema' in variable ? [[name, variable.schema]] : [])),
  ) as SchemasOf<Described>
