import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { expect, test } from 'vitest'
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
  expect(leaves.filter((command) => !/Examples:\n {2}\S/.test(helpOf(command))).map((one) => one.name())).toEqual([])
  expect(commands.filter((command) => command.description() === '').map((one) => one.name())).toEqual([])
})
