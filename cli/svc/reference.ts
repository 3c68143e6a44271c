/** The reference of all commands in docs/cli.md, made from the commands themselves. */
import type { Command } from 'commander'
import { pathOf } from './commands.ts'
import { exitCodeTexts } from './exit-codes.ts'

const columns = 100

/** The exit codes and the help of every command, in Markdown. */
export function formatReference(program: Command): string {
  const rows = Object.entries(exitCodeTexts).map(([code, text]) => `| ${code} | ${text} |`)
  const codes = `## Exit codes\n\n| code | meaning |\n|---|---|\n${rows.join('\n')}\n`
  return [codes, '## Commands\n', ...listSections(program)].join('\n')
}

function listSections(command: Command): string[] {
  const own = `### \`${pathOf(command)}\`\n\n\`\`\`text\n${formatHelp(command)}\n\`\`\`\n`
  return [own, ...command.commands.flatMap(listSections)]
}

/**
 * What `--help` prints, with the texts that other modules add to it. Commands below the first repeat no global options.
 */
function formatHelp(command: Command): string {
  let text = ''
  command
    .configureHelp({ helpWidth: columns, showGlobalOptions: false })
    .configureOutput({
      writeOut: (more) => {
        text += more
      },
    })
    .outputHelp()
  return text.trim()
}
