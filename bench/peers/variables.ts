/** The variables of a measured server. */
import { env } from 'node:process'

/** Throws if the variable is missing. */
export function readVariable(name: string): string {
  const value = env[name]
  if (value === undefined) throw new Error(`${name} is missing`)
  return value
}
