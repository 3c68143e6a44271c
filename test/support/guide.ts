/** The examples of a guide in Markdown: commands that run in one shell, modules, and the output that they promise. */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'

const project = fileURLToPath(new URL('../../', import.meta.url))

/** One block of a guide, or a comment that says what a person does at this point. */
export interface Step {
  readonly kind: 'bash' | 'ts' | 'comment'
  /** The file name of a module; of other steps, the heading above. */
  readonly title: string
  readonly line: number
  readonly text: string
  /** The output in the next block, with `…` for anything. */
  readonly expected?: { readonly kind: 'json' | 'text'; readonly text: string }
}

/** Blocks of other languages are not run. */
export function readSteps(page: string): Step[] {
  const steps: Step[] = []
  let heading = ''
  const parts = page.matchAll(/^#+ ([^\n]+)$|^<!-- ([^\n]+) -->$|^```(\w+)(?: title=(\S+))?\n(.*?)^```$/gms)
  for (const { index, 1: head, 2: comment, 3: language, 4: title, 5: text = '' } of parts) {
    const line = page.slice(0, index).split('\n').length
    const previous = steps.at(-1)
    if (head !== undefined) heading = head
    else if (comment !== undefined) steps.push({ kind: 'comment', title: heading, line, text: comment })
    else if (language === 'bash') steps.push({ kind: 'bash', title: heading, line, text })
    else if (language === 'ts') steps.push({ kind: 'ts', title: title ?? '', line, text })
    else if ((language === 'json' || language === 'text') && previous?.kind === 'bash' && !previous.expected)
      steps.splice(-1, 1, { ...previous, expected: { kind: language, text } })
  }
  return steps
}

/** What the output lacks of the promised one; undefined when it is as promised. Members may be added to JSON. */
export function findDifference({ expected }: Step, output: string): string | undefined {
  if (!expected) return undefined
  if (expected.kind === 'json') return differenceOf(JSON.parse(expected.text), JSON.parse(output), 'the reply')
  // Lines of HTTP headers end with both characters.
  return differenceOf(expected.text.trim(), output.replaceAll('\r\n', '\n').trim(), 'the output')
}

function differenceOf(expected: unknown, actual: unknown, path: string): string | undefined {
  if (typeof expected === 'string' && typeof actual === 'string') {
    const pattern = expected.split('…').map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
    if (new RegExp(`^${pattern.join('.*')}$`).test(actual)) return undefined
  } else if (typeof expected === 'object' && expected !== null && typeof actual === 'object' && actual !== null) {
    return Object.entries(expected)
      .map(([name, value]) => differenceOf(value, (actual as Record<string, unknown>)[name], `${path}.${name}`))
      .find((difference) => difference !== undefined)
  } else if (expected === actual) return undefined
  return `${path} is ${JSON.stringify(actual)}, and not ${JSON.stringify(expected)}`
}

/** A shell in the project's folder that keeps its variables and functions from block to block. */
export class GuideShell {
  readonly #process: ChildProcessByStdio<Writable, Readable, Readable>
  #stdout = ''
  #stderr = ''

  constructor(variables: Readonly<Record<string, string>>) {
    this.#process = spawn('bash', ['--noprofile', '--norc', '-eu', '-o', 'pipefail'], {
      cwd: project,
      env: { ...process.env, ...variables },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    this.#process.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text
    })
    this.#process.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text
    })
    // Writing to a shell that has ended fails; `run` rejects then.
    this.#process.stdin.on('error', () => {})
  }

  /** Resolves with what the commands print. Rejects when one of them fails, which ends the shell. */
  async run(commands: string): Promise<string> {
    this.#stdout = ''
    this.#stderr = ''
    const mark = `end-of-block-${crypto.randomUUID()}`
    const { stdout } = this.#process
    const finished = new Promise<void>((resolve, reject) => {
      const fail = () => reject(new Error(`the shell has ended:\n${this.#stdout}\n${this.#stderr}`))
      if (this.#process.exitCode !== null) return fail()
      this.#process.once('close', fail)
      const look = () => {
        if (!this.#stdout.includes(mark)) return
        stdout.off('data', look)
        this.#process.off('close', fail)
        resolve()
      }
      stdout.on('data', look)
    })
    this.#process.stdin.write(`${commands}\necho ${mark}\n`)
    await finished
    return this.#stdout.replace(`${mark}\n`, '')
  }

  end(): void {
    this.#process.kill('SIGKILL')
  }
}
