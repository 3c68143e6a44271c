/** `svc completion`: scripts with which a shell completes commands, options and their values. */
import { Argument, type Command, Option } from 'commander'
import { pathOf } from './commands.ts'
import { printLine } from './output.ts'

const shells = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof shells)[number]

interface CompletedCommand {
  /** `svc sessions list` */
  readonly path: string
  /** What may follow: commands, and the values of arguments that take one of some. */
  readonly words: readonly string[]
  readonly options: readonly Option[]
}

export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .addArgument(new Argument('<shell>').choices(shells))
    .description('print a script with which a shell completes commands, options and values')
    .addHelpText(
      'after',
      `
Add to ~/.bashrc:                   eval "$(svc completion bash)"
Add to ~/.zshrc, after compinit:    eval "$(svc completion zsh)"
Add to ~/.config/fish/config.fish:  svc completion fish | source`,
    )
    .action((shell: Shell) => printLine(formatScript(shell, listCommands(program, []))))
}

const help = new Option('--help')
const takesValue = ({ required, optional }: Option): boolean => required || optional

/** @param inherited options of the commands above. */
function listCommands(command: Command, inherited: readonly Option[]): CompletedCommand[] {
  const options = [...inherited, ...command.options]
  const names = command.commands.map((child) => child.name())
  const words = [...names, ...command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices)]
  return [
    { path: pathOf(command), words, options: [...options, help] },
    ...command.commands.flatMap((child) => listCommands(child, options)),
  ]
}

function formatScript(shell: Shell, commands: readonly CompletedCommand[]): string {
  if (shell === 'fish') return formatFish(commands)
  const script = formatBash(commands)
  return shell === 'bash' ? script : `autoload -Uz bashcompinit && bashcompinit\n${script}`
}

function formatBash(commands: readonly CompletedCommand[]): string {
  const paths = commands.map(({ path }) => `'${path}'`).join(' | ')
  const values = commands.flatMap(({ path, options }) =>
    options
      .filter(takesValue)
      .map(({ long, argChoices = [] }) => `    '${path} ${long}') candidates='${argChoices.join(' ')}' ;;`),
  )
  const candidates = commands.map(({ path, words, options }) => {
    const flags = options.map(({ long }) => long)
    return `        '${path}') candidates='${[...words, ...flags].join(' ')}' ;;`
  })
  return `_svc() {
  local path=svc candidates='' word="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" index
  for ((index = 1; index < COMP_CWORD; index++)); do
    case "$path \${COMP_WORDS[index]}" in
      ${paths}) path="$path \${COMP_WORDS[index]}" ;;
    esac
  done
  case "$path $previous" in
${values.join('\n')}
    *)
      case "$path" in
${candidates.join('\n')}
      esac
      ;;
  esac
  COMPREPLY=($(compgen -W "$candidates" -- "$word"))
}
complete -o default -F _svc svc`
}

function formatFish(commands: readonly CompletedCommand[]): string {
  const paths = commands.map(({ path }) => `'${path}'`).join(' ')
  const lines = commands.flatMap(({ path, words, options }) => {
    const start = `complete -c svc -n '__svc_is_at "${path}"'`
    return [
      ...(words.length === 0 ? [] : [`${start} -a '${words.join(' ')}'`]),
      ...options.map((option) => `${start} -l ${option.long?.slice(2)}${formatFishValue(option)}`),
    ]
  })
  return `function __svc_is_at
  set -l path svc
  for word in (commandline -opc)[2..-1]
    contains -- "$path $word" ${paths}; and set path "$path $word"
  end
  test "$path" = "$argv[1]"
end
complete -c svc -f
${lines.join('\n')}`
}

function formatFishValue(option: Option): string {
  if (!takesValue(option)) return ''
  return option.argChoices ? ` -x -a '${option.argChoices.join(' ')}'` : ' -r -F'
}
