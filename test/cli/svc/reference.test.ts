/** The reference of svc in docs/cli.md, compared with the commands. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { expect, test } from 'vitest'
import { pathOf } from '../../../cli/svc/commands.ts'
import { createProgram } from '../../../cli/svc/program.ts'
import { formatReference } from '../../../cli/svc/reference.ts'

test('docs/cli.md has the help of every command', async () => {
  const page = await readFile(new URL('../../../docs/cli.md', import.meta.url), 'utf8')
  const reference = page.slice(page.indexOf('## Exit codes\n'))
  expect(reference, 'run `npm run generate`').toBe(formatReference(createProgram()))
})

test('every command that does something has examples in its help, and a description', () => {
  const list = (command: Command): Command[] => [command, ...command.commands.flatMap(list)]
  const commands = list(createProgram())
  const leaves = commands.filter((command) => command.commands.length === 0 && command.name() !== 'completion')
  expect(leaves.length).toBeGreaterThan(20)
  const helpOf = (command: Command): string => {
    let text = ''
    const writeOut = (more: string) => {
      text += more
    }
    command.configureOutput({ writeOut }).outputHelp()
    return text
  }
  expect(
    leaves.filter((command) => !/Examples:\n {2}\S/.test(helpOf(command))).map((command) => command.name()),
  ).toEqual([])
  expect(commands.filter((command) => command.description() === '').map((command) => command.name())).toEqual([])
})

/**
 * The commands in code of the docs: `npm run svc -- jobs list`, with a reason in quotes or a placeholder in capitals.
 */
async function listDocumentedCommands(): Promise<string[]> {
  const docs = fileURLToPath(new URL('../../../docs/', import.meta.url))
  const pages = (await readdir(docs, { recursive: true })).filter((name) => name.endsWith('.md'))
  const texts = await Promise.all(
    [...pages.map((name) => join(docs, name)), join(docs, '../README.md')].map((file) => readFile(file, 'utf8')),
  )
  return texts.flatMap((text) =>
    [...text.matchAll(/npm run svc -- ([^`#|\n]+)/g)].map(([, words = '']) => words.trim()),
  )
}

/** What is wrong with the words of a command; undefined when nothing is. */
function findFault(words: readonly string[]): string | undefined {
  const program = createProgram()
  let command = program
  for (const word of words) command = command.commands.find((child) => child.name() === word) ?? command
  const rest = words.filter((word) => !pathOf(command).split(' ').includes(word))
  // A sentence may name a group or a command without more.
  if (rest.length === 0) return undefined
  if (command.commands.length > 0 && rest.some((word) => /^[a-z]/.test(word))) return 'is no command'
  const options = [...command.options, ...program.options]
  const unknown = words.find((word) => word.startsWith('--') && options.every(({ long }) => long !== word))
  if (unknown !== undefined && unknown !== '--help') return `has the unknown option ${unknown}`
  const missing = command.options.find(({ mandatory, long }) => mandatory && !words.includes(long ?? ''))
  return missing && `lacks ${missing.long}`
}

test('the commands in the docs exist, with their options', async () => {
  const commands = await listDocumentedCommands()
  expect(commands.length).toBeGreaterThan(10)
  const faults = commands.flatMap((words) => {
    const fault = findFault(words.split(/\s+/))
    return fault === undefined ? [] : [`${words}: ${fault}`]
  })
  expect(faults).toEqual([])
})
