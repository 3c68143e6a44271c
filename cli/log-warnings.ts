/** Shows the warnings and errors of the programs' logs in the terminal, one short line each. */
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'

const shownLevels = new Set(['warn', 'error', 'fatal'])
/** The same message is shown once in this time. */
const repeatMillis = 30_000
const partBytesMax = 1_048_576

interface LogEntry {
  level?: string
  time?: string
  msg?: string
  err?: { message?: string }
}

/**
 * `name │ 10:33:14 UTC error  message: cause` for a warning or worse; undefined for other lines and for lines that are
 * not JSON.
 */
export function formatWarning(name: string, line: string): string | undefined {
  let entry: LogEntry | null
  try {
    entry = JSON.parse(line) as LogEntry | null
  } catch {
    return undefined
  }
  if (entry === null) return undefined
  if (!shownLevels.has(entry.level ?? '')) return undefined
  const time = new Date(entry.time ?? Date.now()).toISOString().slice(11, 19)
  const text = [entry.msg, entry.err?.message?.split('\n')[0]].filter((part) => part).join(': ')
  return `${name} │ ${time} UTC ${entry.level?.padEnd(5)} ${text}`
}

/** Shows the warnings that are appended to a log from now on. @returns a function that stops it. */
export async function showWarnings(name: string, file: string, show: (text: string) => void): Promise<() => void> {
  let offset = await sizeOf(file)
  let incompleteLine = ''
  const shownAt = new Map<string, number>()
  const showLine = (line: string) => {
    const text = formatWarning(name, line)
    if (text === undefined) return
    const key = text.replaceAll(/\d+/g, '')
    const now = Date.now()
    if (now - (shownAt.get(key) ?? 0) < repeatMillis) return
    if (shownAt.size > 1000) shownAt.clear()
    shownAt.set(key, now)
    show(text)
  }
  const readAppended = async () => {
    const size = await sizeOf(file)
    // A file that is smaller than before has been replaced or truncated.
    if (size < offset) offset = 0
    if (size === offset) return
    const part = await buffer(createReadStream(file, { start: offset, end: offset + partBytesMax - 1 }))
    offset += part.length
    const lines = (incompleteLine + part.toString('utf8')).split('\n')
    incompleteLine = lines.pop() ?? ''
    lines.forEach(showLine)
  }
  let isReading = false
  const timer = setInterval(async () => {
    if (isReading) return
    isReading = true
    await readAppended().catch(() => {})
    isReading = false
  }, 250)
  return () => clearInterval(timer)
}

const sizeOf = (file: string): Promise<number> =>
  stat(file).then(
    ({ size }) => size,
    () => 0,
  )
