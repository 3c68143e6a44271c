/** Everything that the service stores, as text: rows, histories of workflows, files, and the arguments of processes. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Client, Connection } from '@temporalio/client'
import type { Database } from '../../db/connection.ts'

/** The rows of every table, with bytes as hexadecimal digits and, where they are UTF-8, as text. */
export async function readTables(sql: Database): Promise<Map<string, string>> {
  const tables = await sql`
    select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`
  const texts = new Map<string, string>()
  for (const { name } of tables) {
    const rows = await sql.unsafe(`select to_jsonb(t)::text as row from "${name}" t`)
    const text = rows.map(({ row }) => String(row)).join('\n')
    const decoded = [...text.matchAll(/\\\\x([0-9a-f]+)/g)].map(([, hex = '']) => Buffer.from(hex, 'hex').toString())
    texts.set(`table ${name}`, [text, ...decoded].join('\n'))
  }
  return texts
}

/** Histories, memos, search attributes and details of all workflows of the task queue, with decoded payloads. */
export async function readWorkflows(address: string, taskQueue: string): Promise<Map<string, string>> {
  const connection = await Connection.connect({ address })
  try {
    const client = new Client({ connection })
    const texts = new Map<string, string>()
    for await (const { workflowId, runId } of client.workflow.list({ query: `TaskQueue = '${taskQueue}'` })) {
      const handle = client.workflow.getHandle(workflowId, runId)
      const parts = [await handle.fetchHistory(), (await handle.describe()).raw]
      texts.set(`workflow ${workflowId}`, parts.map(textOf).join('\n'))
    }
    return texts
  } finally {
    await connection.close()
  }
}

/** All texts and bytes of a value, in one line each. */
function textOf(value: unknown): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8')
  if (typeof value !== 'object' || value === null) return String(value)
  return Object.entries(value)
    .map(([name, each]) => `${name} ${textOf(each)}`)
    .join('\n')
}

export async function readFiles(folder: string): Promise<Map<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const texts = new Map<string, string>()
  for (const entry of entries.filter((file) => file.isFile())) {
    const path = join(entry.parentPath, entry.name)
    texts.set(`file ${path.slice(folder.length)}`, await readFile(path, 'utf8').catch(() => ''))
  }
  return texts
}

/** The arguments of all processes of this machine that mention the folder, as every user of the machine sees them. */
export async function readArguments(folder: string): Promise<Map<string, string>> {
  const texts = new Map<string, string>()
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    if (text.includes(folder)) texts.set(`arguments of process ${pid}`, text.replaceAll('\0', ' '))
  }
  return texts
}
