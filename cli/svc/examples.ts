/** The examples at the end of each command's help. */
import type { Command } from 'commander'

/** `svc sessions list` */
export const pathOf = (command: Command): string =>
  command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name()

/** @param examples the arguments of each example, without the command itself. */
export const addExamples = (command: Command, examples: readonly string[]): Command =>
  command.addHelpText('after', () => {
    const lines = examples.map((words) => `  $ ${pathOf(command)} ${words}`.trimEnd())
    return `\nExamples:\n${lines.join('\n')}`
  })
