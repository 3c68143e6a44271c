/** The certificates and the key that the URL of the database names. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type DatabaseTarget, parseDatabaseUrl } from './database-url.ts'

type Files = DatabaseTarget['files']

/** Their contents. Throws for a file that cannot be read. */
export const readDatabaseFiles = (files: Files): { readonly [Name in keyof Files]: Buffer } =>
  Object.fromEntries(Object.entries(files).map(([name, path]) => [name, readFileSync(path)]))

/** What is wrong with a URL or with its files: clauses that follow the name of the variable. */
export function findDatabaseUrlProblems(text: string): readonly string[] {
  const { target, problems } = parseDatabaseUrl(text)
  return target ? Object.entries(target.files).flatMap(findFileProblems) : problems
}

function findFileProblems([name, path]: readonly [string, string]): string[] {
  try {
    const content = readFileSync(path)
    if (name === 'sslkey') createPrivateKey(content)
    else new X509Certificate(content)
    return []
  } catch (error) {
    const { code } = error as { readonly code?: string }
    const isUnreadable = code?.startsWith('E') && !code.startsWith('ERR_')
    return [
      isUnreadable
        ? `has the parameter ${name}, whose file cannot be read (${code}): correct its path, and mount the file where the program runs`
        : `has the parameter ${name}, whose file is no ${name === 'sslkey' ? 'private key without a password' : 'certificate'} in PEM`,
    ]
  }
}
