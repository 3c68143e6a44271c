/** What of the programs' logs is worth a person's attention, one short line each; the whole is in the files. */
import { open, stat } from 'node:fs/promises'

const worthShowing = new Set(['warn', 'error', 'fatal'])
/** The same trouble is told once in that time. */
const repeatMillis = 30_000

interface Entry {
  level?: string
  time?: string
  msg?: string
  err?: { message?: string }
}

/** A warning or worse as `name │ 10:33:14 error  what happened: why`; nothing for other lines and what is no JSON. */
export function readableLine(name: string, line: string): string | undefined {
  let entry: Entry | null
  try {
    entry = JSON.parse(line) as Entry | null
  } catch {
    return undefined
  }
  if (entry === null) return undefined
  if (!worthShowing.has(entry.level ?? '')) return undefined
  const time = new Date(entry.time ?? Date.now()).toTimeString().slice(0, 8)
  const text = [entry.msg, entry.err?.message?.split('\n')[0]].filter((part) => part).join(': ')
  return `${name} │ ${time} ${entry.level?.padEnd(5)} ${text}`
}

/** Shows what is appended to a log from now on. @returns how to end it. */
export async function watchLog(name: string, file: string, show: (text: string) => void): Promise<() => void> {
  let offset = await sizeOf(file)
  let rest = ''
  const shownAt = new Map<string, number>()
  const showNew = (line: string) => {
    const text = readableLine(name, line)
    if (text === undefined) return
    const what = text.replaceAll(/\d+/g, '')
    const now = Date.now()
    if (now - (shownAt.get(what) ?? 0) < repeatMillis) return
    if (shownAt.size > 1000) shownAt.clear()
    shownAt.set(what, now)
    show(text)
  }
  const readOn = async () => {
    const size = await sizeOf(file)
    // A shorter file is a new one in its place.
    if (size < offset) offset = 0
    if (size === offset) return
    const part = await readPart(file, offset, Math.min(size - offset, 1_048_576))
    offset += part.length
    const lines = (rest + part.toString('utf8')).split('\n')
    rest = lines.pop() ?? ''
    lines.forEach(showNew)
  }
  let reading = false
  const timer = setInterval(async () => {
    if (reading) return
    reading = true
    await readOn().catch(() => {})
    reading = false
  }, 250)
  return () => clearInterval(timer)
}

const sizeOf = (file: string): Promise<number> =>
  stat(file).then(
    ({ size }) => size,
    () => 0,
  )

async function readPart(file: string, position: number, length: number): Promise<Buffer> {
  const handle = await open(file)
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), { position })
    return buffer.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}
